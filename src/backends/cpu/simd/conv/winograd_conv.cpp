// conv with 3x3, 5x5, 1xN, Nx1 or (of one spatial dim) N weights, or such a window in a volume (1x3x3, 3x1x1), stride 1
// and many channels by Winograd's algorithm, with bias and an epilogue.
//
// oneDNN has the algorithm too, for 3x3 and one layout, with weights that take it 25 ns each to transform, and with
// tiles of 4 x 4 for few 3x3 shapes. Here tiles stay in the second cache from their transform to the output, and
// weights take less than 1 ns each, so that nobody has to ask for it by measuring.
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "autograph/op_def.h"
#include "backends/cpu/anchored_call.h"
#include "backends/cpu/channel_scale.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/conv/winograd_conv_loops.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/threads/parallel.h"
#include "backends/cpu/weights_kernel.h"
#include "ops/defs.h"
#include "ops/window/window_geometry.h"

namespace autograph::simd {
namespace {

constexpr size_t kX = 0;
constexpr size_t kW = 1;
constexpr size_t kB = 2;
// Elements of transformed tiles that share the second cache with a unit's weights and products.
constexpr int64_t kTransformedElements = int64_t{96} * 1024;
// A unit's weights are read from further away: they should meet this many tiles.
constexpr int64_t kMinTiles = 24;
// With less, transforms take longer than the products that they save.
constexpr int64_t kMinChannels = 16;
// Elements of transformed weights that the second cache can hold.
constexpr int64_t kSmallWeights = int64_t{640} * 1024;

// An image as the loops see it.
struct Image {
  int64_t frames = 1;  // of an instance
  std::array<WindowAxis, 2> axes;

  bool has_taps() const {
    const int64_t shorter = std::min(axes[0].kernel, axes[1].kernel);
    const int64_t longer = std::max(axes[0].kernel, axes[1].kernel);
    return shorter == 1 ? longer >= 3 : shorter == longer && (longer == 3 || longer == 5);
  }
};

// One spatial dim is an image of one row. Windows of one frame of a volume (1x3x3) see frames as instances, those along
// the frames alone (3x1x1) an image whose rows are frames.
std::optional<Image> image_of(const AnchoredCall& conv) {
  const Dims x = conv.dims(kX);
  const Dims w = conv.dims(kW);
  if (w.size() < 3 || w.size() > 5) return std::nullopt;
  const auto axes =
      resolve_windows(window_spec(conv.attributes(), Dims(w.begin() + 2, w.end())), std::span(x).subspan(2));
  if (axes.size() == 1) return Image{1, {WindowAxis{.in = 1, .out = 1}, axes[0]}};
  if (axes.size() == 2) return Image{1, {axes[0], axes[1]}};
  const auto is_through = [](const WindowAxis& axis) { return axis.kernel == 1 && axis.in == axis.out; };
  if (is_through(axes[0])) return Image{axes[0].in, {axes[1], axes[2]}};
  if (!is_through(axes[1]) || !is_through(axes[2])) return std::nullopt;
  const int64_t pixels = axes[1].in * axes[2].in;
  return Image{1, {axes[0], WindowAxis{.in = pixels, .out = pixels}}};
}

// Variants by their tag.
enum Tiles : uint8_t { kLargeTiles, kSmallTiles };

WinogradShape shape_of(const AnchoredCall& conv, Layout layout, Tiles tiles) {
  const Dims x = conv.dims(kX);
  const Dims w = conv.dims(kW);
  const auto [frames, axes] = image_of(conv).value();
  const bool together = layout == Layout::channels_last;
  return {.taps = {axes[0].kernel, axes[1].kernel},
          .batch = x[0] * frames,
          .in_channels = x[1],
          .out_channels = w[0],
          .in_block = together ? x[1] : kWinogradChannels,
          .out_block = together ? w[0] : kWinogradChannels,
          .in = {axes[0].in, axes[1].in},
          .out = {axes[0].out, axes[1].out},
          .pad = {axes[0].pad_begin, axes[1].pad_begin},
          // Across a line there is nothing to be apart.
          .dilation = {axes[0].kernel > 1 ? axes[0].dilation : 1, axes[1].kernel > 1 ? axes[1].dilation : 1},
          .has_small_tiles = tiles == kSmallTiles};
}

bool is_dense(const AnchoredCall& conv) {
  const auto strides = conv.attributes().get_or<std::vector<int64_t>>("strides", {});
  return std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 1; });
}

std::string why_not(const KernelCall& call) {
  if (call.exact) return "sums in another order";
  const auto conv = read_conv(call);
  if (!conv) return "not a convolution with a chain of elementwise ops behind it";
  const Dims x = conv->dims(kX);
  const Dims w = conv->dims(kW);
  const std::optional<Image> image = image_of(*conv);
  if (!image || !image->has_taps()) return "3x3, 5x5 and lines of 3 and more only";
  if (std::string reason = why_not_f32(call); !reason.empty()) return reason;
  if (conv->attributes().integer("group") != 1) return "groups";
  if (!is_dense(*conv)) return "strides";
  if (std::min(x[1], w[0]) < kMinChannels) return "less than 16 channels";
  if (conv->output().shape().num_elements().value_or(0) == 0) return "an empty output";
  if (std::string reason = why_not_known_weights(*conv); !reason.empty()) return reason;
  return read_conv_steps(*conv, read_channel_scale(*conv).num_ops).refusal;
}

// Who does what. Many tiles are shared out, each thread taking its own from transform to output, some at a time. With
// few tiles and large weights output channels are shared out, so that every weight is read once, and each thread
// transforms all tiles for itself: that takes less time than to fetch what another one has transformed.
struct WorkPlan {
  bool by_tiles = false;
  int64_t tiles_at_once = 0;

  WorkPlan(const WinogradShape& shape, int threads) {
    const int64_t tiles = shape.tiles();
    const int64_t in_cache = std::max(kMinTiles, kTransformedElements / (shape.points() * shape.in_channels));
    by_tiles = tiles >= threads * kMinTiles || shape.weight_elements() <= kSmallWeights || threads == 1;
    const int64_t share = by_tiles ? (tiles + threads - 1) / threads : tiles;
    // A little more than fits costs less than another turn, which reads all weights once more.
    const int64_t turns = std::max<int64_t>(1, (share + in_cache * 3 / 4) / in_cache);
    tiles_at_once = (share + turns - 1) / turns;
  }
};

class WinogradKernel : public WeightsKernel {
 public:
  WinogradKernel(const KernelCall& call, const AnchoredCall& conv)
      : shape_(shape_of(conv, call.variant->output(0), static_cast<Tiles>(call.variant->tag))),
        scale_(read_channel_scale(conv)),
        steps_(read_conv_steps(conv, scale_.num_ops)),
        x_slot_(static_cast<size_t>(conv.operand(kX).input)),
        threads_(call.threads),
        plan_(shape_, call.threads),
        weights_(packed(
            call, {KnownWeight::of(conv.operand(kW))},
            scale_.of_weights(
                {shape_.has_small_tiles ? "winograd_conv_simd small" : "winograd_conv_simd", shape_.weight_elements(),
                 [this](const std::vector<Tensor>& w, float* to) { transform(w[0].data<float>(), to); }}))),
        bias_(packed(call, {KnownWeight::of(conv.operand(kB))}, scale_.of_bias(shape_.padded_out_channels()))) {}

  void run(const KernelArgs& args) const override {
    WinogradTask task{
        .shape = shape_,
        .x = args.inputs[x_slot_].data<float>(),
        .weights = weights_.data(),
        .bias = bias_.data(),
        .residuals = {steps_, args},
        .y = static_cast<float*>(const_cast<void*>(args.outputs[0].raw())),
        .y_pixel = args.row_stride > 0 ? static_cast<int64_t>(args.row_stride / sizeof(float)) : shape_.out_block,
        .steps = steps_.list,
        .transformed = static_cast<float*>(args.scratch)};
    // Shares of units may end within one: with half of its tiles.
    const int64_t work = plan_.by_tiles ? shape_.tiles() : 2 * shape_.units();
    for_shares(threads_, work, [&](int64_t begin, int64_t end, int thread) {
      WinogradTask part = task;
      part.transformed += thread * (transformed_size() + products_size());
      if (plan_.by_tiles) {
        run_tiles(part, begin, end, 0, 2 * shape_.units());
      } else {
        run_tiles(part, 0, shape_.tiles(), begin, end);
      }
    });
  }

  size_t scratch_bytes() const override {
    return static_cast<size_t>(threads_ * (transformed_size() + products_size())) * sizeof(float);
  }
  size_t spaced_row_bytes() const override {
    const bool is_row = shape_.out_block == shape_.out_channels && steps_.residuals.empty();
    return is_row ? static_cast<size_t>(shape_.out_block) * sizeof(float) : 0;
  }
  bool reads_input(size_t slot) const override { return slot == x_slot_ || steps_.reads(slot); }

 private:
  // Depends on the weights alone.
  void transform(const float* weights, float* to) const {
    for_shares(threads_, shape_.units(),
               [&](int64_t begin, int64_t end, int) { transform_winograd_weights(shape_, weights, begin, end, to); });
  }

  int64_t transformed_size() const { return shape_.points() * shape_.transformed_plane(plan_.tiles_at_once); }
  int64_t products_size() const { return shape_.points() * winograd_plane(plan_.tiles_at_once, kWinogradUnit); }

  // The tiles from `begin` to `end` in the halves of units from `first_half` to `end_half`.
  void run_tiles(WinogradTask task, int64_t begin, int64_t end, int64_t first_half, int64_t end_half) const {
    for (task.first_tile = begin; task.first_tile < end; task.first_tile += task.tiles) {
      task.tiles = std::min(plan_.tiles_at_once, end - task.first_tile);
      transform_winograd_inputs(task);
      const int64_t middle = (task.tiles + 1) / 2;
      for (int64_t half = first_half; half < end_half;) {
        const bool whole = half % 2 == 0 && half + 1 < end_half;
        const int64_t first = half % 2 == 0 ? 0 : middle;
        const int64_t last = whole || half % 2 == 1 ? task.tiles : middle;
        compute_winograd_outputs(task, first, last, half / 2, task.transformed + transformed_size());
        half += whole ? 2 : 1;
      }
    }
  }

  WinogradShape shape_;
  ChannelScale scale_;
  ConvSteps steps_;
  size_t x_slot_;
  int threads_;
  WorkPlan plan_;
  const PackedWeights &weights_, &bias_;
};

Prepared prepare(const KernelCall& call) {
  const auto conv = read_conv(call);
  return {std::make_unique<WinogradKernel>(call, *conv), ""};
}

// Fitted to the ratio to direct convolutions of well-known networks and of few channels (`bench_kernels conv`,
// `bench_kernels few`), AVX-512 with two threads.
double cost_us(const AnchoredCall& conv, const WinogradShape& shape, int threads) {
  constexpr double kStartUs = 6;
  constexpr double kFlopsPerUsAndThread = 96e3;
  constexpr double kTransformedPerUsAndThread = 5e3;  // elements of tiles of six rows and columns
  constexpr double kBytesPerUs = 20e3;
  constexpr double kWeightBytesPerUs = 30e3;
  // A product takes as long to begin and to store as this many more input channels.
  constexpr int64_t kDepthToStart = 16;
  // By how much a panel of half the width is slower.
  constexpr double kHalfPanel = 1.5;
  const KernelCall anchor = conv.anchor_call(threads);
  const OpCost cost = cost_of(conv.op(), {conv.attributes(), anchor.inputs, anchor.outputs});
  // Fewer tiles leave registers idle.
  constexpr int64_t kFewTiles = 8;
  const double tiles = static_cast<double>(std::max(kFewTiles, shape.tiles()) * shape.points());
  const auto channels = static_cast<double>(winograd_padded(shape.in_channels) + shape.padded_out_channels());
  const int64_t half = shape.padded_out_channels() % kWinogradUnit;
  const double columns =
      static_cast<double>(shape.padded_out_channels() - half) + kHalfPanel * static_cast<double>(half);
  const double products = tiles * static_cast<double>(shape.depth() + kDepthToStart) * columns;
  const int64_t given = shape.taps[0] * shape.taps[1] * shape.in_channels * shape.padded_out_channels();
  const double further_weights = static_cast<double>(shape.weight_elements() - given) * sizeof(float);
  return kStartUs + 2 * products / (kFlopsPerUsAndThread * threads) +
         tiles * channels / (kTransformedPerUsAndThread * threads) + cost.bytes / kBytesPerUs +
         further_weights / kWeightBytesPerUs;
}

// Of larger images the products take longer than weights do to come.
bool may_have_small_tiles(const WinogradShape& shape) {
  constexpr int64_t kSmallImage = 12;
  return shape.taps == std::array<int64_t, 2>{3, 3} && std::max(shape.out[0], shape.out[1]) <= kSmallImage;
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  const auto conv = read_conv(call);
  constexpr Layout kLayouts[] = {Layout::channels_last, Layout::blocked16};
  const WinogradShape shape = shape_of(*conv, kLayouts[0], kLargeTiles);
  // In blocks the frames of an instance do not lie one behind the other.
  const bool has_blocks = shape.batch == conv->dims(kX)[0] && shape.in_channels % kWinogradChannels == 0 &&
                          shape.out_channels % kWinogradChannels == 0;
  const auto layouts = std::span(kLayouts).first(has_blocks ? 2 : 1);
  const ConvSteps steps = read_conv_steps(*conv, read_channel_scale(*conv).num_ops);
  std::vector<KernelVariant> all = conv_variants(call, *conv, steps, layouts, cost_us(*conv, shape, call.threads));
  if (may_have_small_tiles(shape)) {
    const WinogradShape small = shape_of(*conv, kLayouts[0], kSmallTiles);
    for (KernelVariant& variant : conv_variants(call, *conv, steps, layouts, cost_us(*conv, small, call.threads))) {
      variant.name = "small_tiles";
      variant.tag = kSmallTiles;
      all.push_back(std::move(variant));
    }
  }
  for (KernelVariant& variant : all) {
    variant.spaces_rows = variant.output(0) == Layout::channels_last && steps.residuals.empty();
  }
  return all;
}

KernelDef kernel_for(std::string_view op) {
  return {.name = "cpu.winograd_conv_simd", .op = op, .why_not = why_not, .prepare = prepare, .variants = variants};
}

}  // namespace

std::vector<KernelDef> winograd_conv_kernels() { return {kernel_for(conv_def().name), kernel_for(fused_def().name)}; }

}  // namespace autograph::simd
