// conv of row-major f32 in one group with one or two spatial dims, bias and an epilogue: sums of rows of pixels, for
// layers with too few channels to fill vectors with them. oneDNN pads such channels to whole vectors, or multiplies
// matrices one column wide.
//
// A block of rows of outputs is computed at a time: the rows that its windows reach are copied into padded ones
// (plane_padding.h), as many channels as fit the second cache.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "autograph/op_def.h"
#include "backends/cpu/anchored_call.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/conv/planes/plane_conv_loops.h"
#include "backends/cpu/simd/conv/planes/plane_padding.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"

namespace autograph::simd {
namespace {

constexpr size_t kX = 0;
constexpr size_t kW = 1;
constexpr size_t kB = 2;
constexpr int64_t kMostOutputs = 16;

std::string why_not(const KernelCall& call) {
  const auto conv = read_conv(call);
  if (!conv) return "not a convolution with a chain of elementwise ops behind it";
  const Dims x = conv->dims(kX), w = conv->dims(kW);
  if (x.size() != 3 && x.size() != 4) return "one or two spatial dims only";
  if (std::string reason = why_not_f32(call); !reason.empty()) return reason;
  if (conv->attributes().integer("group") != 1) return "groups";
  if (conv->output().shape().num_elements().value_or(0) == 0 || w[1] == 0) return "an empty tensor";
  if (w[0] > kMostOutputs) return "channels that fill vectors";
  if (std::string reason = why_not_known_weights(*conv); !reason.empty()) return reason;
  const Tensor& weights = conv->operand(kW).constant;
  if (!all_finite(weights.data<float>(), weights.num_elements())) return "weights that are not finite";
  return read_conv_steps(*conv).refusal;
}

// How the outputs of an image are divided.
struct PlaneBlocks {
  int64_t rows = 1;      // of outputs in a block
  int64_t columns = 1;   // the same; whole rows where there is more than one
  int64_t channels = 1;  // of the input that are copied together

  PlaneBlocks(const PlaneShape& shape, int64_t batch, int64_t in_channels, int threads) {
    constexpr int64_t kCopied = int64_t{40} << 10;  // elements that stay in the second cache beside the sums
    constexpr int64_t kMostRows = 16;
    const int64_t wanted = int64_t{4} * threads;
    rows = std::clamp<int64_t>(shape.rows.out * batch / wanted, 1, kMostRows);
    columns = shape.columns.out;
    if (shape.rows.out == 1 && batch < threads) {
      const int64_t tile = 8 * plane_conv_lanes();
      columns = std::max(tile, (columns / threads + tile - 1) / tile * tile);
    }
    channels = std::clamp<int64_t>(kCopied / (shape.reached_rows(rows) * shape.padded_width()), 1, in_channels);
  }

  int64_t row_blocks(const PlaneShape& shape) const { return (shape.rows.out + rows - 1) / rows; }
  int64_t column_blocks(const PlaneShape& shape) const { return (shape.columns.out + columns - 1) / columns; }
};

class PlaneConv : public Kernel {
 public:
  PlaneConv(const KernelCall& call, const AnchoredCall& conv)
      : shape_(plane_shape(conv.attributes(), conv.dims(kX), conv.dims(kW))),
        offsets_(shape_.offsets()),
        steps_(read_conv_steps(conv)),
        x_slot_(static_cast<size_t>(conv.operand(kX).input)),
        weights_(conv.operand(kW).constant),
        bias_(conv.has(kB) ? conv.operand(kB).constant : Tensor::zeros(DType::f32, {conv.dims(kW)[0]})),
        batch_(conv.dims(kX)[0]),
        in_channels_(conv.dims(kX)[1]),
        out_channels_(conv.dims(kW)[0]),
        threads_(useful_threads(call.threads, work())),
        blocks_(shape_, batch_, in_channels_, threads_),
        padded_size_(shape_.reached_rows(blocks_.rows) * shape_.padded_width()),
        pitch_((blocks_.columns + plane_conv_lanes() - 1) / plane_conv_lanes() * plane_conv_lanes()) {}

  size_t scratch_bytes() const override { return static_cast<size_t>(threads_ * thread_size()) * sizeof(float); }
  bool reads_input(size_t slot) const override { return slot == x_slot_ || steps_.reads(slot); }

  void run(const KernelArgs& args) const override {
    const int64_t parts = blocks_.row_blocks(shape_) * blocks_.column_blocks(shape_);
    for_shares(threads_, batch_ * parts, [&](int64_t begin, int64_t end, int thread) {
      float* copied = static_cast<float*>(args.scratch) + thread * thread_size();
      std::fill_n(copied, copied_size(), 0.0F);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t part = i % parts, columns = blocks_.column_blocks(shape_);
        run_block(args, i / parts, part / columns * blocks_.rows, part % columns * blocks_.columns, copied);
      }
    });
  }

 private:
  int64_t work() const {
    constexpr double kFlopsOfWork = 16;  // in the time that one element takes (parallel.h)
    const double outputs = static_cast<double>(batch_ * out_channels_ * shape_.rows.out * shape_.columns.out);
    return static_cast<int64_t>(
        std::min(2 * outputs * static_cast<double>(in_channels_ * shape_.taps()) / kFlopsOfWork, 1e15));
  }

  int64_t copied_size() const { return (blocks_.channels * padded_size_ + 15) / 16 * 16 + kPlaneSlack; }
  int64_t thread_size() const { return copied_size() + (out_channels_ * blocks_.rows * pitch_ + 15) / 16 * 16; }

  // Outputs from a row and a column of an image on.
  void run_block(const KernelArgs& args, int64_t image, int64_t row, int64_t column, float* copied) const {
    const float* x = args.inputs[x_slot_].data<float>() + image * in_channels_ * shape_.rows.in * shape_.columns.in;
    float* sums = copied + copied_size();
    const int64_t rows = std::min(blocks_.rows, shape_.rows.out - row);
    const int64_t columns = std::min(blocks_.columns, shape_.columns.out - column);
    for (int64_t c = 0; c < in_channels_; c += blocks_.channels) {
      const int64_t channels = std::min(blocks_.channels, in_channels_ - c);
      for (int64_t k = 0; k < channels; ++k) {
        pad_rows(shape_, x + (c + k) * shape_.rows.in * shape_.columns.in, row * shape_.rows.stride,
                 shape_.reached_rows(rows), copied + k * padded_size_);
      }
      add_plane_products({.padded = copied + column,
                          .padded_size = padded_size_,
                          .channels = channels,
                          .width = shape_.padded_width(),
                          .offsets = offsets_.data(),
                          .taps = shape_.taps(),
                          .taps_of_row = shape_.columns.kernel,
                          .weights = weights_.data<float>() + c * shape_.taps(),
                          .weights_size = in_channels_ * shape_.taps(),
                          .bias = c == 0 ? bias_.data<float>() : nullptr,
                          .outputs = out_channels_,
                          .rows = rows,
                          .row_stride = shape_.rows.stride,
                          .is_dense = shape_.rows.dilation == 1,
                          .columns = columns,
                          .sums = sums,
                          .pitch = pitch_});
    }
    const ConvResiduals residuals(steps_, args);
    float* y = static_cast<float*>(const_cast<void*>(args.outputs[0].raw()));
    for (int64_t o = 0; o < out_channels_; ++o) {
      for (int64_t r = 0; r < rows; ++r, sums += pitch_) {
        const int64_t at = ((image * out_channels_ + o) * shape_.rows.out + row + r) * shape_.columns.out + column;
        finish_row(steps_.list, residuals + at, sums, columns);
        std::copy_n(sums, columns, y + at);
      }
    }
  }

  PlaneShape shape_;
  std::vector<int64_t> offsets_;  // of the taps of a window
  ConvSteps steps_;
  size_t x_slot_;
  Tensor weights_, bias_;
  int64_t batch_, in_channels_, out_channels_;
  int threads_;
  PlaneBlocks blocks_;
  int64_t padded_size_;  // of a channel
  int64_t pitch_;        // of a row of sums
};

Prepared prepare(const KernelCall& call) {
  const auto conv = read_conv(call);
  return {std::make_unique<PlaneConv>(call, *conv), ""};
}

// Inputs are loaded once for up to four channels of the output, the ends of rows cost whole vectors, and each row of
// four channels takes its time to begin.
double cost_us(const AnchoredCall& conv, int threads) {
  constexpr double kStartUs = 3;
  constexpr double kBytesPerUs = 20e3;
  constexpr double kFlopsPerUsAndLane = 6e3;  // of a thread
  constexpr double kPartOfOne = 0.7;
  constexpr double kRowUs = 0.15;
  const PlaneShape shape = plane_shape(conv.attributes(), conv.dims(kX), conv.dims(kW));
  const KernelCall anchor = conv.anchor_call(threads);
  const OpCost cost = cost_of(conv.op(), {conv.attributes(), anchor.inputs, anchor.outputs});
  const int64_t lanes = plane_conv_lanes(), outputs = conv.dims(kW)[0];
  const int64_t whole = (shape.columns.out + lanes - 1) / lanes * lanes;
  const double filled = static_cast<double>(shape.columns.out) / static_cast<double>(whole);
  const double rate = kFlopsPerUsAndLane * static_cast<double>(lanes) * filled * (outputs < 3 ? kPartOfOne : 1.0);
  const int64_t fours = (outputs + 3) / 4;
  const double rows = static_cast<double>(conv.dims(kX)[0] * shape.rows.out * fours);
  const auto planes = static_cast<double>(conv.dims(kX)[0] * conv.dims(kX)[1]);
  const double work_us = cost.flops / rate + kRowUs * rows + planes * shape.sorting_us();
  return kStartUs + work_us / threads + cost.bytes / kBytesPerUs;
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  const auto conv = read_conv(call);
  constexpr Layout kLayouts[] = {Layout::row_major};
  return conv_variants(call, *conv, read_conv_steps(*conv), kLayouts, cost_us(*conv, call.threads));
}

KernelDef kernel_for(std::string_view op) {
  return {.name = "cpu.conv_of_planes", .op = op, .why_not = why_not, .prepare = prepare, .variants = variants};
}

}  // namespace

std::vector<KernelDef> plane_conv_kernels() { return {kernel_for(conv_def().name), kernel_for(fused_def().name)}; }

}  // namespace autograph::simd
