// conv with one to three spatial dims, groups, dilation, bias and an epilogue.
//
// oneDNN has several implementations of a convolution, in several layouts, and Winograd's algorithm beside the direct
// one. All of them are offered as variants. Winograd sums in another order, with up to half as much again of error on
// whole networks (docs/performance.md), so it is left out when exact results are asked for. oneDNN takes about 25 ns a
// weight to transform them, so that without measurements only small ones are taken: models load as fast as elsewhere.
//
// With bf16 the kernel rounds input and weights to bf16, the input on every run, and leaves sums and output in f32.
// oneDNN has these implementations for channels-last tensors alone.
#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>

#include "autograph/op_def.h"
#include "backends/cpu/all_finite.h"
#include "backends/cpu/anchored_call.h"
#include "backends/cpu/onednn/bf16.h"
#include "backends/cpu/onednn/conv/conv_cost.h"
#include "backends/cpu/onednn/conv/conv_windows.h"
#include "backends/cpu/onednn/conv/convolution_turn.h"
#include "backends/cpu/onednn/conv/window_tiles.h"
#include "backends/cpu/onednn/implementation_lists.h"
#include "backends/cpu/onednn/onednn_ops.h"
#include "backends/cpu/onednn/post_ops.h"
#include "backends/cpu/refusal.h"
#include "ops/defs.h"
#include "runtime/memory/packed_constants.h"

namespace autograph {

namespace onednn {
namespace {

constexpr size_t kX = 0;
constexpr size_t kW = 1;
constexpr size_t kB = 2;
constexpr size_t kChannelAxis = 1;
// Implementations taken per pair of layouts; further ones are fallbacks that never win.
constexpr size_t kMaxImplementations = 3;
// Inputs with at most this many channels may be read row-major by blocked kernels: images.
constexpr int64_t kMaxPlainChannels = 4;

std::string why_not(const KernelCall& call) {
  const auto conv = read_conv(call);
  if (!conv) return "not a convolution with a chain of elementwise ops behind it";
  const size_t rank = conv->dims(kX).size();
  if (rank < 3 || rank > 5) return "1 to 3 spatial dims only";
  if (conv->operand(kX).input < 0) return "a constant input";
  std::string reason = why_not_f32(call);
  if (reason.empty()) reason = why_not_post_ops(*conv, kChannelAxis);
  return reason;
}

std::string why_not_bf16(const KernelCall& call) {
  std::string reason = why_no_bf16();
  return reason.empty() ? why_not(call) : reason;
}

dnnl::memory::dims weight_dims(const AnchoredCall& conv) {
  return grouped_weights(conv.dims(kW), conv.attributes().integer("group"));
}

// Which pair of layouts and which algorithm; its number is the tag of a variant.
struct Form {
  Layout src = Layout::row_major;
  Layout dst = Layout::row_major;
  dnnl::algorithm algorithm = dnnl::algorithm::convolution_direct;
};

std::vector<Form> forms(const AnchoredCall& conv, bool exact, DataType operands) {
  if (operands == DataType::bf16) return {{Layout::channels_last, Layout::channels_last}};
  const Layout blocked = native_block();
  std::vector<Form> list{
      {Layout::row_major, Layout::row_major}, {blocked, blocked}, {Layout::channels_last, Layout::channels_last}};
  if (conv.dims(kX)[kChannelAxis] <= kMaxPlainChannels) list.push_back({Layout::row_major, blocked});
  const Dims w = conv.dims(kW);
  const bool is_3x3 = w.size() == 4 && w[2] == 3 && w[3] == 3 && conv.attributes().integer("group") == 1;
  if (is_3x3 && !exact) list.push_back({blocked, blocked, dnnl::algorithm::convolution_winograd});
  return list;
}

using Desc = dnnl::convolution_forward::desc;
using Descriptor = dnnl::convolution_forward::primitive_desc;

// A convolution in one form.
class Convolution {
 public:
  Convolution(const AnchoredCall& conv, const Form& form, DataType operands, PostOps post_ops)
      : form_(form),
        operands_(operands),
        x_(conv.dims(kX)),
        w_(weight_dims(conv)),
        y_(conv.output().shape().static_dims()),
        windows_(conv.attributes(), x_, conv.dims(kW)),
        post_ops_(std::move(post_ops)),
        bias_(conv.has(kB) ? row_major({y_[kChannelAxis]}) : dnnl::memory::desc()) {
    lie_down();
  }

  void set_form(const Form& form) { form_ = form; }

  // Throws dnnl::error where oneDNN has nothing for the form.
  Desc make_desc() const { return make_desc(any_layout(w_, operands_)); }
  Desc make_desc(const dnnl::memory::desc& weights) const {
    return {dnnl::prop_kind::forward_inference,
            form_.algorithm,
            input(),
            weights,
            bias_,
            output(),
            windows_.strides,
            windows_.dilates,
            windows_.pads_begin,
            windows_.pads_end};
  }

  // The first implementation. While the result steps through others `desc` must live.
  Descriptor describe(const Desc& desc, Use use) const {
    dnnl::primitive_attr attributes = new_attributes(use);
    attributes.set_post_ops(post_ops_.ops);
    return {desc, attributes, cpu_engine()};
  }

  bool is_usable(const std::string& implementation) const {
    const auto is = [&](std::string_view part) { return implementation.find(part) != std::string::npos; };
    if (is("ref") || !windows_.allow(implementation)) return false;
    // What oneDNN 2.6 gets wrong: it adds with SSE what lies in memory, which must be aligned then (rows of 33 channels
    // are not); and behind gemm it looks for vectors of channels of volumes as if they were images.
    if (is("sse41") && post_ops_.accumulated_input >= 0) return false;
    // It also takes pixels of an odd number of channels in bf16 for pixels of one more.
    const int64_t channels = w_[w_.size() - x_.size() + kChannelAxis];  // of a group
    if (is("jit_bf16_1x1") && form_.src == Layout::channels_last && channels % 2 != 0) return false;
    return !is("gemm") || post_ops_.arguments.empty() || x_.size() < 5 || form_.dst != Layout::channels_last;
  }

  // Usable ones, best first.
  std::vector<std::string> list_implementations() const {
    std::vector<std::string> names;
    const ConvolutionTurn turn(operands_);
    try {
      const Desc desc = make_desc();
      Descriptor candidate = describe(desc, Use::list);
      do {
        const std::string name = candidate.impl_info_str();
        const bool is_new = std::find(names.begin(), names.end(), name) == names.end();
        if (is_new && is_usable(name)) names.push_back(name);
      } while (names.size() < kMaxImplementations && candidate.next_impl());
    } catch (const dnnl::error&) {
      // oneDNN has nothing for this form.
    }
    return names;
  }

  ProblemKind kind(int threads) const {
    ProblemKind kind;
    kind.add(threads).add(static_cast<int64_t>(operands_)).add(static_cast<int64_t>(form_.algorithm));
    kind.add(static_cast<int64_t>(form_.src)).add(static_cast<int64_t>(form_.dst));
    kind.add(w_).add(x_[kChannelAxis]);
    if (form_.algorithm == dnnl::algorithm::convolution_direct) {
      windows_.add_extents(kind, x_, w_, y_);
    } else {
      kind.add_magnitudes(x_).add_magnitudes(y_);
    }
    windows_.add_to(kind);
    return kind.add(bias_.is_zero() ? 0 : 1).add(post_ops_.ops);
  }

  // Is it computed row by row, by a window that slides along each of them step by step?
  bool slides_along_rows() const {
    const auto all = [](std::span<const int64_t> list, int64_t number) {
      return std::all_of(list.begin(), list.end(), [&](int64_t n) { return n == number; });
    };
    const auto across = [](const dnnl::memory::dims& list) { return std::span(list).first(list.size() - 1); };
    const bool is_row = w_.size() == x_.size() && all(across(w_).subspan(kChannelAxis + 1), 1) &&
                        all(windows_.strides, 1) && all(windows_.dilates, 0) && all(across(windows_.pads_begin), 0) &&
                        all(across(windows_.pads_end), 0);
    return is_row && has_alike_arguments();
  }
  // Is the result of a pixel the same wherever it lies?
  bool has_equal_pixels() const {
    return slides_along_rows() && w_.back() == 1 && windows_.pads_begin.back() == 0 && windows_.pads_end.back() == 0;
  }
  // Windows that a tile of a few pixels has room for, and of few enough channels that oneDNN adds them all up at once,
  // in the same order wherever the window lies.
  bool has_small_windows() const {
    constexpr int64_t kMostChannels = 128, kMostTaps = 25;
    if (x_.size() != 4 || w_.size() != x_.size() || w_[kChannelAxis] > kMostChannels || has_equal_pixels())
      return false;
    const bool is_tight = windows_.dilates == dnnl::memory::dims{0, 0};
    return is_tight && w_[2] * w_[3] <= kMostTaps && y_[2] >= kTile[0] && y_[3] >= kTile[1] && has_alike_arguments();
  }
  int64_t num_pixels() const {
    return std::accumulate(y_.begin() + kChannelAxis + 1, y_.end(), y_[0], std::multiplies<>());
  }
  double flops() const {
    const double of_pixel = std::accumulate(w_.begin(), w_.end(), 2.0, std::multiplies<>());
    return of_pixel * static_cast<double>(num_pixels());
  }
  // All pixels as one line, or each row.
  RowLines lines() const {
    if (has_equal_pixels()) return {.in = num_pixels(), .out = num_pixels()};
    return {num_pixels() / y_.back(), x_.back(), y_.back(), windows_.pads_begin.back()};
  }
  int64_t halo() const { return w_.back() - 1; }
  // The same for so many pixels in a row, without padding.
  Convolution with_pixels(int64_t count) const {
    Convolution part = *this;
    for (dnnl::memory::dims* dims : {&part.x_, &part.y_}) {
      std::fill(dims->begin() + kChannelAxis + 1, dims->end(), 1);
      dims->front() = 1;
    }
    part.x_.back() = count + halo();
    part.y_.back() = count;
    part.windows_.pads_begin.back() = part.windows_.pads_end.back() = 0;
    return part;
  }

  // The same for a tile of pixels, without padding.
  Convolution with_tile() const {
    Convolution part = *this;
    part.x_.front() = part.y_.front() = 1;
    part.windows_.pads_begin = part.windows_.pads_end = {0, 0};
    for (size_t axis = 0; axis < kTile.size(); ++axis) {
      part.y_[axis + 2] = kTile[axis];
      part.x_[axis + 2] = (kTile[axis] - 1) * windows_.strides[axis] + w_[axis + 2];
    }
    return part;
  }
  WindowGrid grid() const {
    const auto& [strides, dilates, pads_begin, pads_end] = static_cast<const WindowLists&>(windows_);
    return {.images = x_[0],
            .in = {x_[2], x_[3]},
            .out = {y_[2], y_[3]},
            .strides = {strides[0], strides[1]},
            .pads = {pads_begin[0], pads_begin[1]}};
  }

  dnnl::memory::desc input() const { return desc_in(form_.src, x_, operands_); }
  dnnl::memory::desc output() const { return desc_in(form_.dst, y_); }
  const dnnl::memory::desc& bias() const { return bias_; }
  const dnnl::memory::dims& input_dims() const { return x_; }
  const dnnl::memory::dims& weight_dims_in_groups() const { return w_; }
  PostOps& post_ops() { return post_ops_; }
  const PostOps& post_ops() const { return post_ops_; }

 private:
  // Lines of a tile, and pixels of each: few enough that images of a deep layer are no smaller.
  static constexpr std::array<int64_t, 2> kTile{4, 8};

  // Are the arguments of the epilogue the same for each pixel?
  bool has_alike_arguments() const {
    return std::all_of(post_ops_.arguments.begin(), post_ops_.arguments.end(), [](const Argument& argument) {
      dnnl::memory::dims dims = argument.wanted.dims();
      dims[kChannelAxis] = 1;
      return std::all_of(dims.begin(), dims.end(), [](int64_t extent) { return extent == 1; });
    });
  }

  // A column is the same as a row in every layout. oneDNN's kernels work along rows: with one column, a window at a
  // time, at a sixth of the speed.
  void lie_down() {
    if (!windows_.is_column(x_, w_, y_)) return;
    for (dnnl::memory::dims* dims : {&x_, &w_, &y_}) std::swap((*dims)[dims->size() - 2], dims->back());
    windows_.swap_axes();
  }

  Form form_;
  DataType operands_;  // of input and weights
  dnnl::memory::dims x_, w_, y_;
  ConvWindows windows_;
  PostOps post_ops_;
  dnnl::memory::desc bias_;
};

// Nothing where one tensor would be needed in two layouts.
std::optional<std::vector<Layout>> input_layouts(const AnchoredCall& conv, const Form& form, size_t num_inputs,
                                                 const PostOps& post_ops) {
  const auto x = static_cast<size_t>(conv.operand(kX).input);
  std::vector<Layout> layouts(num_inputs, Layout::row_major);
  layouts[x] = form.src;
  for (const int residual : {post_ops.accumulated_input, post_ops.added_last}) {
    if (residual < 0) continue;
    if (static_cast<size_t>(residual) == x && form.src != form.dst) return std::nullopt;
    layouts[static_cast<size_t>(residual)] = form.dst;
  }
  return layouts;
}

PostOps post_ops_of(const AnchoredCall& conv) {
  return make_post_ops(conv, kChannelAxis, {conv.output().shape().static_dims(), kChannelAxis});
}

std::vector<KernelVariant> variants_with(const KernelCall& call, DataType operands) {
  const auto conv = read_conv(call);
  const std::vector<Form> list = forms(*conv, call.exact, operands);
  const PostOps post_ops = post_ops_of(*conv);
  const KernelCall anchor = conv->anchor_call(call.threads);
  const OpCost cost = cost_of(conv->op(), {conv->attributes(), anchor.inputs, anchor.outputs});
  const double other_us = conversion_us(conv->operand(kX).type, operands, call.threads);
  Convolution convolution(*conv, {}, operands, post_ops);
  std::vector<KernelVariant> result;
  for (size_t number = 0; number < list.size(); ++number) {
    const Form& form = list[number];
    convolution.set_form(form);
    const auto names =
        implementations_for(convolution.kind(call.threads), [&] { return convolution.list_implementations(); });
    const auto layouts = input_layouts(*conv, form, call.inputs.size(), post_ops);
    if (!layouts) continue;
    for (const std::string& name : names) {
      if (!convolution.is_usable(name)) continue;
      result.push_back({.name = name,
                        .inputs = *layouts,
                        .outputs = {form.dst},
                        .cost_us = conv_cost_us(*conv, cost, name, form.dst, call.threads, speedup(name)) + other_us,
                        .tag = static_cast<int>(number)});
    }
  }
  return result;
}

// One convolution of a call, about to become a kernel.
class Maker {
 public:
  Maker(const KernelCall& call, const AnchoredCall& conv, const Form& form, DataType operands)
      : call_(call),
        conv_(conv),
        form_(form),
        operands_(operands),
        chosen_(conv, form, operands, post_ops_of(conv)),
        turn_(operands) {}

  std::unique_ptr<Kernel> make() {
    if (std::unique_ptr<Kernel> tiled = make_tiled()) return tiled;
    const std::optional<Convolution> part = part_for_all();
    if (part) {
      if (const std::shared_ptr<const RowTile> tile = held_tile(*part)) return make_late(tile);
    }
    const Desc desc = chosen_.make_desc();
    const auto describe = [&] { return chosen_.describe(desc, Use::run); };
    const Descriptor pd = describe_implementation(call_.variant->name, describe);
    // The first shape of weights may be the only one.
    if (part && PrimitiveKernel::is_packed(weights_argument(pd.weights_desc()), call_.packed)) {
      if (const auto tile = share_tile(*part, pd.weights_desc(), pd.scratchpad_desc())) return make_late(tile);
    }
    auto [primitive, made_of] = make_implementation<dnnl::convolution_forward>(call_.variant->name, describe, pd);
    return kernel_around(std::move(primitive), made_of.weights_desc(), made_of.scratchpad_desc());
  }

 private:
  static std::pair<dnnl::convolution_forward, Descriptor> make_primitive(const Convolution& conv, const Desc& desc,
                                                                         std::string_view name) {
    return make_implementation<dnnl::convolution_forward>(name, [&] { return conv.describe(desc, Use::run); });
  }

  // A larger layer runs longer than its code takes to make.
  static constexpr double kMostFlops = 2.5e8;
  static constexpr int64_t kManyPixels = 128;  // by tiles of half as many

  bool may_be_tiled() const {
    return form_.src == Layout::channels_last && operands_ == DataType::f32 && call_.packed &&
           conv_.operand(kW).constant.is_present() && chosen_.flops() <= kMostFlops;
  }

  // What is computed a few pixels at a time until the shape has come back; nothing where that gains nothing.
  std::optional<Convolution> part_for_all() const {
    constexpr int64_t kLeastPixels = 16;
    const int64_t pixels = chosen_.num_pixels();
    if (!may_be_tiled()) return std::nullopt;
    if (may_have_windows()) return chosen_.with_tile();
    if (!chosen_.has_equal_pixels() || pixels < kLeastPixels || !adds_alike(call_.variant->name)) return std::nullopt;
    return chosen_.with_pixels(pixels < kManyPixels ? kManyPixels / 4 : kManyPixels / 2);
  }

  // By tiles of windows? Zeros stand for the padding: of numbers that are not finite they would make NaN. Windows along
  // rows may be added in another order than by code for the whole.
  bool may_have_windows() const {
    const std::string_view name = call_.variant->name;
    if (!name.starts_with("brgconv:") && !name.starts_with("jit:")) return false;
    const Tensor& weights = conv_.operand(kW).constant;
    return chosen_.has_small_windows() && !chosen_.slides_along_rows() && chosen_.post_ops().accumulated_input < 0 &&
           all_finite(weights.data<float>(), weights.num_elements());
  }

  // Windows along rows, such as those of 1x3, where extents of images change from run to run: oneDNN takes 1 ms for
  // their code, and adds in an order that follows from the extents. So no shape gets code of its own, whether it comes
  // back or not. Null where there is nothing to gain.
  std::unique_ptr<Kernel> make_tiled() {
    constexpr int64_t kRowsOfRest = 8, kSomeRows = 16;
    if (!may_be_tiled() || !call_.packed->expects_other_extents()) return {};
    if (!chosen_.slides_along_rows() || chosen_.halo() == 0 || is_product(call_.variant->name)) return {};
    const Tensor& weights = conv_.operand(kW).constant;
    const RowLines lines = chosen_.lines();
    const int64_t rows = lines.out < kSomeRows ? kRowsOfRest : lines.out < kManyPixels ? kSomeRows : kManyPixels / 2;
    const auto small = share_tile(chosen_.with_pixels(kRowsOfRest), any_layout(chosen_.weight_dims_in_groups()), {});
    const auto large = small ? share_tile(chosen_.with_pixels(rows), small->weights, {}) : nullptr;
    if (!large || large->weights != small->weights || !all_finite(weights.data<float>(), weights.num_elements()))
      return {};
    auto kernel = kernel_around({}, small->weights, {});
    kernel->set_tiles(row_tiles({large, small}), nullptr);
    return kernel;
  }

  std::unique_ptr<Kernel> make_late(const std::shared_ptr<const RowTile>& tile) {
    auto late = std::make_unique<LatePrimitive>(late_maker(*tile));
    auto kernel = kernel_around({}, tile->weights, tile->scratchpad_of_all);
    kernel->set_tiles(tiles_of(tile), std::move(late));
    return kernel;
  }

  std::unique_ptr<Tiles> row_tiles(const RowTiles::Pair& tiles) const {
    return std::make_unique<RowTiles>(tiles, chosen_.lines(), chosen_.post_ops().accumulated_input >= 0, call_.threads);
  }
  std::unique_ptr<Tiles> tiles_of(const std::shared_ptr<const RowTile>& tile) const {
    if (chosen_.has_equal_pixels()) return row_tiles({tile, tile});
    return std::make_unique<WindowTiles>(tile, chosen_.grid(), call_.threads);
  }

  static bool is_product(std::string_view name) { return name.find("gemm") != std::string_view::npos; }

  // Does an implementation add in the same order however many pixels there are? Products ("gemm") do not, and need no
  // code for each shape.
  static bool adds_alike(std::string_view name) {
    return name.starts_with("brgconv_1x1") || name.starts_with("jit_1x1");
  }

  std::string form_of_tile(const Convolution& part) const {
    return form_of_rows(call_.variant->name, part.kind(call_.threads));
  }

  // What kernels of other shapes hold: then nothing needs to be described for this one.
  std::shared_ptr<const RowTile> held_tile(const Convolution& part) const {
    return PackedConstants::held<RowTile>(call_.packed, {conv_.operand(kW).constant}, form_of_tile(part));
  }

  // For weights that lie so. Null where oneDNN has none.
  std::shared_ptr<const RowTile> share_tile(const Convolution& part, const dnnl::memory::desc& weights,
                                            const dnnl::memory::desc& scratchpad_of_all) const {
    const TeamScope scope(1);
    try {
      return PackedConstants::share(call_.packed, {conv_.operand(kW).constant}, form_of_tile(part), [&] {
        const auto& [primitive, pd] = make_primitive(part, part.make_desc(weights), call_.variant->name);
        return row_tile(primitive, pd, scratchpad_of_all, part.num_pixels(), chosen_.halo());
      });
    } catch (const dnnl::error&) {
      return nullptr;
    }
  }

  std::function<dnnl::primitive()> late_maker(const RowTile& tile) const {
    return [whole = chosen_, operands = operands_, name = std::string(call_.variant->name), weights = tile.weights,
            most_scratch = tile.scratchpad_of_all.get_size()] {
      const ConvolutionTurn turn(operands);
      auto [primitive, pd] = make_primitive(whole, whole.make_desc(weights), name);
      check_fits(pd.scratchpad_desc(), most_scratch);
      return dnnl::primitive(std::move(primitive));
    };
  }

  size_t slot(size_t k) const { return static_cast<size_t>(conv_.operand(k).input); }

  Argument weights_argument(const dnnl::memory::desc& wanted) const {
    return {DNNL_ARG_WEIGHTS,          false, slot(kW), row_major(chosen_.weight_dims_in_groups()), wanted,
            conv_.operand(kW).constant};
  }

  std::unique_ptr<PrimitiveKernel> kernel_around(dnnl::primitive primitive, const dnnl::memory::desc& weights,
                                                 const dnnl::memory::desc& scratchpad) {
    const dnnl::memory::desc x = chosen_.input(), y = chosen_.output();
    std::vector<Argument> arguments{
        {DNNL_ARG_SRC, false, slot(kX), desc_in(form_.src, chosen_.input_dims()), x},
        weights_argument(weights),
        {DNNL_ARG_DST, true, 0, y, y},
    };
    if (conv_.has(kB)) {
      arguments.push_back({DNNL_ARG_BIAS, false, slot(kB), chosen_.bias(), chosen_.bias(), conv_.operand(kB).constant});
    }
    PostOps& post_ops = chosen_.post_ops();
    for (Argument& argument : post_ops.arguments) arguments.push_back(std::move(argument));
    auto kernel =
        std::make_unique<PrimitiveKernel>(std::move(primitive), std::move(arguments), scratchpad, call_.packed);
    if (post_ops.accumulated_input >= 0) kernel->set_accumulated_input(static_cast<size_t>(post_ops.accumulated_input));
    kernel->set_last_pass(post_ops.last, post_ops.added_last, call_.threads);
    return kernel;
  }

  const KernelCall& call_;
  const AnchoredCall& conv_;
  Form form_;
  DataType operands_;
  Convolution chosen_;
  ConvolutionTurn turn_;
};

std::unique_ptr<Kernel> make(const KernelCall& call, DataType operands) {
  const auto conv = read_conv(call);
  const Form form = forms(*conv, call.exact, operands)[static_cast<size_t>(call.variant->tag)];
  return Maker(call, *conv, form, operands).make();
}

template <DataType operands>
std::vector<KernelVariant> variants(const KernelCall& call) {
  return variants_with(call, operands);
}

template <DataType operands>
Prepared prepare(const KernelCall& call) {
  return try_prepare([&] { return make(call, operands); });
}

KernelDef kernel_for(std::string_view op) {
  return {.name = "cpu.conv_onednn",
          .op = op,
          .why_not = why_not,
          .prepare = prepare<DataType::f32>,
          .variants = variants<DataType::f32>};
}

KernelDef bf16_kernel_for(std::string_view op) {
  return {.name = "cpu.conv_bf16_onednn",
          .op = op,
          .why_not = why_not_bf16,
          .prepare = prepare<DataType::bf16>,
          .variants = variants<DataType::bf16>};
}

}  // namespace

KernelDef conv_kernel() { return kernel_for(conv_def().name); }
KernelDef fused_conv_kernel() { return kernel_for(fused_def().name); }
std::vector<KernelDef> bf16_conv_kernels() {
  return {bf16_kernel_for(conv_def().name), bf16_kernel_for(fused_def().name)};
}

}  // namespace onednn
}  // namespace autograph
