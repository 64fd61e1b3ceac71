// Convolutions with dilation or long windows and transposed convolutions of one to three spatial dims, in groups or
// not, as tap products (tap_products.h): oneDNN's kernels of vectors have few of these, its others multiply matrices by
// parts.
//
// Columns are shared out among the threads, and rows where there are too few of them: that all gather takes less time
// than to fetch the weights that another one reads just now.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograph/op_def.h"
#include "backends/cpu/anchored_call.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/conv/tap_products.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/threads/parallel.h"
#include "backends/cpu/weights_kernel.h"
#include "base/join.h"
#include "ops/defs.h"
#include "ops/window/conv_transpose_windows.h"

namespace autograph::simd {
namespace {

constexpr size_t kX = 0;
constexpr size_t kW = 1;
constexpr size_t kB = 2;

bool is_transposed(const AnchoredCall& conv) { return &conv.op() == &conv_transpose_def(); }

std::shared_ptr<const AnchoredCall> read_call(const KernelCall& call) {
  const OpDef* const anchors[] = {&conv_def(), &conv_transpose_def()};
  return AnchoredCall::read(call, anchors);
}

TapShape shape_of(const AnchoredCall& conv) {
  const Dims x = conv.dims(kX), w = conv.dims(kW);
  const int64_t groups = conv.attributes().integer("group");
  if (is_transposed(conv)) {
    return tap_shape_of_transposed(conv_transpose_windows(conv.attributes(), x, w), {groups, x[1] / groups, w[1]});
  }
  const auto axes = resolve_windows(window_spec(conv.attributes(), Dims(w.begin() + 2, w.end())),
                                    std::span<const int64_t>(x).subspan(2));
  return tap_shape_of_conv(axes, {groups, w[1], w[0] / groups});
}

bool has_wide_vectors() { return tap_columns() > 16; }

// Windows that reach far along an axis, and lines of one spatial dim: oneDNN's direct kernels of AVX2 refuse a padding
// of five, and are slower with strides. With AVX-512, where short lines were not measured, they stay with oneDNN.
bool is_long(const AnchoredCall& conv) {
  constexpr int64_t kLong = 8;
  const Dims w = conv.dims(kW);
  const int64_t longest = *std::max_element(w.begin() + 2, w.end());
  return longest >= kLong || (w.size() == 3 && longest > 1 && !has_wide_vectors());
}

bool is_dilated(const AnchoredCall& conv) {
  const Dims w = conv.dims(kW);
  const auto dilations = conv.attributes().get_or<std::vector<int64_t>>("dilations", {});
  for (size_t a = 0; a < dilations.size(); ++a) {
    if (dilations[a] > 1 && w[a + 2] > 1) return true;
  }
  return false;
}

std::string why_not(const KernelCall& call) {
  const auto conv = read_call(call);
  if (!conv) return "not a convolution with a chain of elementwise ops behind it";
  const size_t rank = conv->dims(kX).size();
  if (rank < 3 || rank > 5) return "1 to 3 spatial dims only";
  if (std::string reason = why_not_f32(call); !reason.empty()) return reason;
  if (is_transposed(*conv) && !conv->epilogue().empty()) return "ops behind a transposed convolution";
  if (!is_transposed(*conv) && !is_dilated(*conv) && !is_long(*conv)) return "no dilation, nor 8 taps in a row";
  const int64_t groups = conv->attributes().integer("group");
  if (groups > 1 && conv->output().shape().static_dims()[1] == groups) return "one output channel a group";
  if (std::string reason = why_not_known_weights(*conv); !reason.empty()) return reason;
  return read_conv_steps(*conv).refusal;
}

// How the work is divided: tiles of rows of an instance, and parts of the columns.
struct Division {
  int64_t tiles = 1;
  int64_t parts = 1;
  int64_t blocks = 0;  // of rows that are computed together

  Division(const TapShape& shape, int64_t batch, int threads) {
    // Of rows: what is gathered of them leaves room for sums and weights in a second cache.
    constexpr int64_t kMostRows = 108;
    constexpr int64_t kFewColumns = 64;  // for a thread: all threads gather
    blocks = (shape.num_points() + tap_rows() - 1) / tap_rows();
    tiles = (blocks * tap_rows() + kMostRows - 1) / kMostRows;
    int64_t columns = shape.columns(shape.classes[0]);
    for (const TapClass& c : shape.classes) columns = std::min(columns, shape.columns(c));
    if (shape.channels.groups < threads) {
      for (parts = threads; parts > 1 && (threads % parts != 0 || columns < parts * kFewColumns);) --parts;
    }
    const int64_t others = batch * shape.channels.groups * parts;
    while (others * tiles % threads != 0 && others * tiles < int64_t{8} * threads && tiles < blocks) ++tiles;
  }

  int64_t first_row(int64_t tile) const { return blocks * tile / tiles * tap_rows(); }
  int64_t most_rows() const { return (blocks + tiles - 1) / tiles * tap_rows(); }
};

double flops_of(const TapShape& shape, int64_t batch) {
  const int64_t width = tap_columns() / 2;
  double flops = 0;
  for (const TapClass& c : shape.classes) {
    const int64_t columns = (shape.columns(c) + width - 1) / width * width;
    flops += 2.0 * static_cast<double>(shape.depth(c) * columns);
  }
  return flops * static_cast<double>(batch * shape.channels.groups * shape.num_points());
}

class TapConv : public WeightsKernel {
 public:
  TapConv(const KernelCall& call, const AnchoredCall& conv)
      : shape_(shape_of(conv)),
        batch_(conv.dims(kX)[0]),
        panels_(shape_),
        in_(call.variant->input(kX), conv.dims(kX)[1], shape_.in),
        out_(call.variant->output(0), conv.output().shape().static_dims()[1], shape_.out),
        order_(call.variant->output(0) == Layout::row_major ? TapColumns::phases_inside : TapColumns::channels_inside),
        steps_(read_conv_steps(conv)),
        x_slot_(static_cast<size_t>(conv.operand(kX).input)),
        in_size_(elements(call.variant->input(kX), conv.dims(kX))),
        out_size_(elements(call.variant->output(0), conv.output().shape().static_dims())),
        threads_(useful_threads(call.threads,
                                static_cast<int64_t>(std::min(flops_of(shape_, batch_) / kFlopsOfWork, 1e15)))),
        division_(shape_, batch_, threads_),
        packed_(packed(call, {KnownWeight::of(conv.operand(kW)), KnownWeight::of(conv.operand(kB))},
                       form_of(conv, call.threads))) {}

  size_t scratch_bytes() const override { return static_cast<size_t>(threads_ * thread_size()) * sizeof(float); }
  bool reads_input(size_t slot) const override { return slot == x_slot_ || steps_.reads(slot); }

  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[x_slot_].data<float>();
    const ConvResiduals residuals(steps_, args);
    float* y = static_cast<float*>(const_cast<void*>(args.outputs[0].raw()));
    const int64_t tiles = division_.tiles, groups = shape_.channels.groups, count = batch_ * groups * tiles;
    for_shares(threads_, count * division_.parts, [&](int64_t begin, int64_t end, int thread) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t tile = i % tiles, instance = i % count / tiles / groups;
        const int64_t row = division_.first_row(tile);
        run_tap_products({.shape = shape_,
                          .panels = panels_,
                          .in = in_,
                          .out = out_,
                          .order = order_,
                          .x = x + instance * in_size_,
                          .packed = packed_.data(),
                          .residuals = residuals + instance * out_size_,
                          .y = y + instance * out_size_,
                          .steps = steps_.list,
                          .scratch = static_cast<float*>(args.scratch) + thread * thread_size(),
                          .group = i / tiles % groups,
                          .row = row,
                          .rows = std::min(division_.first_row(tile + 1), shape_.num_points()) - row,
                          .part = i / count,
                          .parts = division_.parts});
      }
    });
  }

 private:
  // Flops in the time that one element takes (parallel.h).
  static constexpr double kFlopsOfWork = 16;

  static int64_t elements(Layout layout, const Dims& dims) {
    int64_t count = 1;
    const Dims padded = padded_dims(layout, dims);
    for (size_t a = 1; a < padded.size(); ++a) count *= padded[a];
    return count;
  }

  int64_t thread_size() const { return tap_scratch_size(shape_, division_.most_rows()); }

  // What packed weights depend on besides the weights: groups, and which taps meet in which columns.
  static std::string key_of(const TapShape& shape) {
    std::string key = fmt::format("{} {}", tap_columns(), shape.channels.groups);
    for (const TapClass& c : shape.classes) key += fmt::format(" {}:{}", c.phases.size(), join(c.kernels));
    return key;
  }

  WeightForm form_of(const AnchoredCall& conv, int threads) const {
    return {fmt::format("tap_conv_simd {} {} {}", conv.op().name,
                        order_ == TapColumns::phases_inside ? "planes" : "pixels", key_of(shape_)),
            shape_.channels.groups * panels_.of_group,
            [this, threads, transposed = is_transposed(conv)](const std::vector<Tensor>& elements, float* to) {
              pack(elements, transposed, threads, to);
            }};
  }

  void pack(const std::vector<Tensor>& elements, bool transposed, int threads, float* to) const {
    const Dims& w = elements[0].dims();
    int64_t positions = 1;
    for (size_t a = 2; a < w.size(); ++a) positions *= w[a];
    const TapWeights weights{.data = elements[0].data<float>(),
                             .bias = elements[1].is_present() ? elements[1].data<float>() : nullptr,
                             .of_in_channel = transposed ? w[1] * positions : positions,
                             .of_out_channel = transposed ? positions : w[1] * positions,
                             .of_group = w[0] / shape_.channels.groups * w[1] * positions};
    for_shares(threads, panels_.total,
               [&](int64_t begin, int64_t end, int) { pack_tap_panels(shape_, weights, order_, begin, end, to); });
  }

  const TapShape shape_;
  const int64_t batch_;
  const TapPanels panels_;
  const TapPlaces in_, out_;
  const TapColumns order_;
  const ConvSteps steps_;
  const size_t x_slot_;
  const int64_t in_size_, out_size_;  // elements of an instance
  const int threads_;
  const Division division_;
  const PackedWeights& packed_;
};

Prepared prepare(const KernelCall& call) {
  const auto conv = read_call(call);
  return {std::make_unique<TapConv>(call, *conv), ""};
}

// Rows that are gathered for a tap, by all threads together.
double gathers_of(const TapShape& shape, int64_t batch, int threads) {
  size_t taps = 0;
  for (const TapClass& c : shape.classes) taps += c.taps.size();
  return static_cast<double>(batch * shape.channels.groups * shape.num_points() * static_cast<int64_t>(taps)) *
         static_cast<double>(Division(shape, batch, threads).parts);
}

// Measured with AVX2. What oneDNN's kernels of AVX2 take is expected to be what they take beside AVX-512
// (conv_cost.cpp, backward_cost.cpp), nearly twice as much: so is this, to stand where it belongs among them. With
// AVX-512 it was not measured: as much as oneDNN's products reach.
double cost_us(const AnchoredCall& conv, const TapShape& shape, int threads) {
  constexpr double kStartUs = 4, kBytesPerUs = 15e3;
  constexpr double kGatherUs = 3e-3, kGatherUsPerChannel = 6e-5, kWriteUs = 5e-4;
  const bool is_wide = has_wide_vectors();
  const double flops_per_us = is_wide ? 80e3 : 90e3;
  // For volumes oneDNN has less.
  const bool is_volume = conv.dims(kX).size() == 5;
  const double scale = is_wide ? 1.0 : is_volume ? 1.4 : is_transposed(conv) ? 2.0 : 1.7;
  const int64_t batch = conv.dims(kX)[0];
  const double gather_us = kGatherUs + kGatherUsPerChannel * static_cast<double>(shape.channels.in);
  const auto outputs = static_cast<double>(conv.output().shape().num_elements().value_or(0));
  const double us =
      flops_of(shape, batch) / flops_per_us + gathers_of(shape, batch, threads) * gather_us + outputs * kWriteUs;
  const KernelCall anchor = conv.anchor_call(threads);
  const OpCost cost = cost_of(conv.op(), {conv.attributes(), anchor.inputs, anchor.outputs});
  return kStartUs + scale * us / threads + cost.bytes / (kBytesPerUs * threads);
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  const auto conv = read_call(call);
  const TapShape shape = shape_of(*conv);
  const double us = cost_us(*conv, shape, call.threads);
  std::vector<Layout> layouts{Layout::channels_last};
  for (const Layout layout : {Layout::blocked8, Layout::blocked16}) {
    // Padding would have to stay zero, which not every epilogue gives.
    const bool fills_blocks = conv->output().shape().static_dims()[1] % channel_block(layout) == 0;
    if (fills_blocks && channel_block(layout) == tap_columns() / 2) layouts.push_back(layout);
  }
  std::vector<KernelVariant> result = conv_variants(call, *conv, read_conv_steps(*conv), layouts, us);
  if (!fills_lines(shape)) return result;
  // Sums become planes while they are in the cache.
  KernelVariant& planes = result.emplace_back(result[0]);
  for (const int residual : read_conv_steps(*conv).residuals) {
    planes.inputs[static_cast<size_t>(residual)] = Layout::row_major;
  }
  planes.outputs[0] = Layout::row_major;
  return result;
}

KernelDef kernel_for(std::string_view op) {
  return {.name = "cpu.tap_conv_simd", .op = op, .why_not = why_not, .prepare = prepare, .variants = variants};
}

}  // namespace

std::vector<KernelDef> tap_conv_kernels() {
  return {kernel_for(conv_def().name), kernel_for(fused_def().name), kernel_for(conv_transpose_def().name)};
}

}  // namespace autograph::simd
