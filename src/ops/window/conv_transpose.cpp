// conv_transpose: the gradient of conv with respect to its input, as an op of its own. Every x[n, c, i] adds
// x * w[c, m, k] to y[n, m, i * stride - pad_begin + k * dilation], where m runs over the output channels of c's group;
// positions outside y are dropped, and b[m] is added everywhere.
//
// Output extent, with span = (kernel - 1) * dilation + 1:
//   NOTSET, VALID  (in - 1) * stride + output_padding + span - pads (VALID: no pads)
//   SAME_*         in * stride
//   output_shape   as given (its last entries are the spatial ones)
// In the last two the padding is what is left over, halved; the odd element goes to the end for SAME_UPPER and to the
// beginning otherwise.
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "base/checked_int.h"
#include "base/join.h"
#include "graph/moved_bytes.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "ops/window/conv_gradients.h"
#include "ops/window/conv_transpose_windows.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

// Extent of the full result on `axis`, before padding is cut off, beyond in * stride.
int64_t full_extra(const Attributes& attributes, const WindowSpec& spec, size_t axis) {
  const int64_t span =
      checked_add(checked_mul(spec.kernel[axis] - 1, spec.dilations[axis], "conv_transpose"), 1, "conv_transpose");
  const auto* output_padding = attributes.find_as<Dims>("output_padding");
  return checked_add(span, output_padding ? (*output_padding)[axis] : 0, "conv_transpose") - spec.strides[axis];
}

bool is_same(const WindowSpec& spec) { return spec.auto_pad == "SAME_UPPER" || spec.auto_pad == "SAME_LOWER"; }

// The window seen from the result: it slides over y, one position per element of x.
WindowAxis resolve(const Attributes& attributes, const WindowSpec& spec, size_t axis, int64_t x_extent) {
  WindowAxis w;
  w.out = x_extent;
  w.kernel = spec.kernel[axis];
  w.stride = spec.strides[axis];
  w.dilation = spec.dilations[axis];
  const int64_t scaled = checked_mul(x_extent, w.stride, "conv_transpose");
  const int64_t full = checked_add(scaled, full_extra(attributes, spec, axis), "conv_transpose");
  const auto* output_shape = attributes.find_as<Dims>("output_shape");
  if (output_shape || is_same(spec)) {
    w.in = output_shape ? (*output_shape)[output_shape->size() - spec.kernel.size() + axis] : scaled;
    const int64_t total = std::max<int64_t>(0, full - w.in);
    w.pad_begin = spec.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.pad_end = total - w.pad_begin;
    return w;
  }
  w.pad_begin = spec.pads[axis];
  w.pad_end = spec.pads[axis + spec.kernel.size()];
  w.in = full - checked_add(w.pad_begin, w.pad_end, "conv_transpose");
  return w;
}

Dim output_extent(const InferContext& context, const WindowSpec& spec, size_t axis, const Dim& in) {
  const Attributes& attributes = context.attributes();
  if (in.is_known() || attributes.contains("output_shape")) {
    const WindowAxis w = resolve(attributes, spec, axis, in.value_or(1));
    context.require<ShapeError>(w.in >= 1, "output",
                                fmt::format("expected an extent of 1 or more on spatial axis {}, got {}", axis, w.in));
    return w.in;
  }
  const Dim scaled = in * Dim(spec.strides[axis]);
  if (is_same(spec)) return scaled;
  const int64_t pads = checked_add(spec.pads[axis], spec.pads[axis + spec.kernel.size()], "conv_transpose");
  const int64_t more = full_extra(attributes, spec, axis) - pads;
  return more >= 0 ? scaled + Dim(more) : scaled - Dim(-more);
}

void check_shapes(const InferContext& context, const Shape& x, const Shape& w) {
  const int64_t group = context.attributes().integer("group");
  context.require<ValueError>(group >= 1, "group", fmt::format("expected 1 or more, got {}", group));
  const bool same_channels = !x[1].is_known() || !w[0].is_known() || x[1].value() == w[0].value();
  context.require<ShapeError>(same_channels, "channels",
                              fmt::format("expected {} (first extent of w {}), got {} (x {})", to_string(w[0]),
                                          to_string(w), to_string(x[1]), to_string(x)));
  context.require<ShapeError>(
      !w[0].is_known() || w[0].value() % group == 0, "group",
      fmt::format("expected a divisor of the {} input channels, got {}", to_string(w[0]), group));
  if (!context.has_input(2) || !context.shape(2).has_rank()) return;
  const Shape& bias = context.shape(2);
  const bool fits = bias.rank() == 1 && (!bias[0].is_known() || !w[1].is_known() ||
                                         bias[0].value() == checked_mul(w[1].value(), group, "conv_transpose"));
  context.require<ShapeError>(
      fits, "bias",
      fmt::format("expected [{} * {}] (w {}), got {}", to_string(w[1]), group, to_string(w), to_string(bias)));
}

void check_attributes(const InferContext& context, size_t spatial_rank) {
  check_window_attributes(context, static_cast<int64_t>(spatial_rank));
  const auto check = [&](const char* name, bool with_channels, int64_t least) {
    const auto* list = context.attributes().find_as<Dims>(name);
    if (!list) return;
    const bool length_fits = list->size() == spatial_rank || (with_channels && list->size() == spatial_rank + 2);
    const bool values_fit = std::all_of(list->begin(), list->end(), [least](int64_t v) { return v >= least; });
    context.require<ValueError>(
        length_fits && values_fit, name,
        fmt::format("expected {} values of {} or more, got {}", spatial_rank, least, bracketed(*list)));
  };
  check("output_padding", false, 0);
  check("output_shape", true, 1);
}

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  const Shape& w = context.shape(1);
  if (!x.has_rank()) {
    return context.set_output(0, context.dtype(0), w.has_rank() ? Shape::of_rank(w.rank()) : Shape::unknown());
  }
  context.require<ShapeError>(x.rank() >= 3, "x", "expected [N, C, spatial...], got " + to_string(x));
  context.require_rank(1, x.rank());
  const auto spatial_rank = static_cast<size_t>(x.rank() - 2);
  check_attributes(context, spatial_rank);
  Shape y = Shape::of_rank(x.rank());
  y[0] = x[0];
  if (!w.has_rank()) return context.set_output(0, context.dtype(0), y);
  check_shapes(context, x, w);
  y[1] = w[1] * Dim(context.attributes().integer("group"));
  const Shape extents(std::vector<Dim>(w.dims().begin() + 2, w.dims().end()));
  if (extents.is_static()) {
    const Dims kernel = extents.static_dims();
    const Dims given = context.attributes().get_or<Dims>("kernel_shape", kernel);
    context.require<ShapeError>(
        given == kernel && *std::min_element(kernel.begin(), kernel.end()) >= 1, "kernel_shape",
        fmt::format("expected the weight's spatial extents {}, all 1 or more, got {}", to_string(w), bracketed(given)));
    const WindowSpec spec = window_spec(context.attributes(), kernel);
    for (size_t axis = 0; axis < spatial_rank; ++axis) {
      const auto dim = static_cast<int64_t>(axis + 2);
      y[dim] = output_extent(context, spec, axis, x[dim]);
    }
  }
  context.set_output(0, context.dtype(0), y);
}

// Adds every x element times its weights into `sums`, which has the layout of y.
template <class T>
void scatter(const OpCall& call, std::span<const WindowAxis> axes, std::vector<double>& sums) {
  const TensorView x = call.input(0);
  const TensorView w = call.input(1);
  const T* in = x.data<T>();
  const T* weights = w.data<T>();
  const int64_t channels = x.dim(1);
  const int64_t group_in = channels / call.attributes.integer("group");
  const int64_t group_out = w.dim(1);
  const int64_t out_channels = call.output(0).dim(1);
  const int64_t x_positions = checked_product(x.dims().subspan(2), "conv_transpose");
  const int64_t y_positions = checked_product(call.output(0).dims().subspan(2), "conv_transpose");
  const int64_t kernel_positions = checked_product(w.dims().subspan(2), "conv_transpose");
  for_each_window(axes, [&](std::span<const int64_t> at, int64_t position) {
    for_each_tap(axes, at, [&](int64_t kernel, int64_t target) {
      for (int64_t row = 0; row < x.dim(0) * channels; ++row) {
        const int64_t c = row % channels;
        const double value = static_cast<double>(in[row * x_positions + position]);
        const int64_t first_out = row / channels * out_channels + c / group_in * group_out;
        for (int64_t m = 0; m < group_out; ++m) {
          const auto y = static_cast<size_t>((first_out + m) * y_positions + target);
          sums[y] += value * static_cast<double>(weights[(c * group_out + m) * kernel_positions + kernel]);
        }
      }
    });
  });
}

void reference(const OpCall& call) {
  const auto axes = conv_transpose_windows(call.attributes, call.input(0).dims(), call.input(1).dims());
  const TensorView y = call.output(0);
  std::vector<double> sums(static_cast<size_t>(y.num_elements()), 0.0);
  const int64_t y_positions = checked_product(y.dims().subspan(2), "conv_transpose");
  dispatch<FloatTypes>(y.dtype(), [&]<class T>(TypeTag<T>) {
    scatter<T>(call, axes, sums);
    const T* bias = call.input(2).is_present() ? call.input(2).data<T>() : nullptr;
    T* out = y.mutable_data<T>();
    for (int64_t i = 0; i < y.num_elements(); ++i) {
      const double b = bias ? static_cast<double>(bias[i / y_positions % y.dim(1)]) : 0.0;
      out[i] = T(sums[static_cast<size_t>(i)] + b);
    }
  });
}

// Each weight [c, m, k] is multiplied once per position of x's channel c.
OpCost cost(const CostContext& context) {
  const auto elements = [](const Type& type) { return static_cast<double>(*type.shape().num_elements()); };
  OpCost cost{.bytes = moved_bytes(context)};
  const Dims w = context.inputs[1].shape().static_dims();
  if (w[0] > 0)
    cost.flops = 2.0 * elements(context.inputs[0]) * elements(context.inputs[1]) / static_cast<double>(w[0]);
  return cost;
}

OpSample sample(Random& random) {
  const int64_t spatial_rank = draw(random, 1, 3);
  const int64_t group = draw(random, 1, 2);
  Dims x{draw(random, 1, 2), group * draw(random, 1, 2)};
  Dims w{x[1], draw(random, 1, 2)};
  const int64_t out_channels = w[1] * group;
  Dims strides;
  Dims dilations;
  Dims output_padding;
  Dims pads(static_cast<size_t>(2 * spatial_rank), 0);
  for (int64_t axis = 0; axis < spatial_rank; ++axis) {
    w.push_back(draw(random, 1, 3));
    x.push_back(draw(random, 2, 3));
    strides.push_back(draw(random, 1, 3));
    dilations.push_back(draw(random, 1, 2));
    output_padding.push_back(draw(random, 0, strides.back() - 1));
    // One element of padding leaves at least one element, since x has two.
    pads[static_cast<size_t>(axis)] = w.back() > 1 ? draw(random, 0, 1) : 0;
  }
  OpSample sample;
  sample.attributes = {
      {"strides", strides}, {"dilations", dilations}, {"group", group}, {"output_padding", output_padding}};
  const auto auto_pad = draw_one_of<std::string>(random, {"NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"});
  sample.attributes.set("auto_pad", auto_pad);
  if (auto_pad == "NOTSET") sample.attributes.set("pads", pads);
  sample.inputs = {draw_tensor(random, DType::f32, x), draw_tensor(random, DType::f32, w)};
  if (draw_bool(random)) sample.inputs.emplace_back(draw_tensor(random, DType::f32, {out_channels}));
  return sample;
}

// An extent that stands for open ones: paddings follow from the attributes alone, unless the output's extents are
// given.
constexpr int64_t kOpenExtent = 1024;

bool has_open_extents(const Shape& x) {
  return !Shape(std::vector<Dim>(x.dims().begin() + 2, x.dims().end())).is_static();
}

Dims extents_or_open(const Shape& x) {
  Dims extents;
  for (int64_t axis = 0; axis < x.rank(); ++axis) extents.push_back(x[axis].value_or(kOpenExtent));
  return extents;
}

// What flows into a result of given extents, with the elements that were cut off as zeros: how many these are in front
// follows from the open extents of x.
Var with_what_was_cut(VjpContext& c, const WindowSpec& spec) {
  Dims more;
  for (size_t axis = 0; axis < spec.kernel.size(); ++axis) {
    more.push_back(full_extra(c.attributes(), spec, axis) - c.out(0).dim(static_cast<int64_t>(axis) + 2));
  }
  const Var x = c.in(0), like = constant_like(x, Tensor::vector(more));
  const Var scaled = slice(extents_of(x), {2}, {x.rank()}, {0}) * constant_like(x, Tensor::vector(spec.strides));
  const Var total = max({scaled + like, scalar_like(like, 0)});
  return padded_to_windows(c.gy(0), spec.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2, spec, x);
}

void vjp_of_output_shape(VjpContext& c) {
  const Var x = c.in(0), w = c.in(1);
  const Dims extents = w.shape().static_dims();
  const WindowSpec spec = window_spec(c.attributes(), Dims(extents.begin() + 2, extents.end()));
  const ConvOptions options = without_pads(spec, c.attributes().integer("group"));
  const Var gy = with_what_was_cut(c, spec);
  if (c.wants(0)) c.set(0, reshape_as(conv(gy, w, {}, options), x));
  if (c.wants(1)) c.set(1, conv_grad_weight(gy, x, spec.kernel, options));
}

void vjp(VjpContext& c) {
  const Var x = c.in(0), w = c.in(1);
  if (!x.shape().has_rank() || !w.shape().is_static()) {
    c.unsupported("its rule needs a known rank and weights of known extents, got " + to_string(x.shape()) + " and " +
                  to_string(w.shape()));
  }
  if (c.wants(2)) c.set(2, sum_of_channels(c.gy(0)));
  const bool is_open = has_open_extents(x.shape());
  if (is_open && c.attributes().contains("output_shape")) return vjp_of_output_shape(c);
  const auto axes = conv_transpose_windows(c.attributes(), extents_or_open(x.shape()), w.shape().static_dims());
  const int64_t group = c.attributes().integer("group");
  if (c.wants(0)) {
    const Var gradient = convolve_windows(c.gy(0), w, axes, group);
    c.set(0, is_open ? reshape_as(gradient, x) : gradient);
  }
  if (c.wants(1)) c.set(1, correlate(c.gy(0), x, axes, group));
}

}  // namespace

std::vector<WindowAxis> conv_transpose_windows(const Attributes& attributes, std::span<const int64_t> x,
                                               std::span<const int64_t> w) {
  const WindowSpec spec = window_spec(attributes, Dims(w.begin() + 2, w.end()));
  std::vector<WindowAxis> axes;
  for (size_t axis = 0; axis < spec.kernel.size(); ++axis) {
    axes.push_back(resolve(attributes, spec, axis, x[axis + 2]));
  }
  return axes;
}

Var conv_transpose(Var x, Var w, Var b, const ConvOptions& options) {
  Attributes attributes = conv_options_attributes(options);
  if (!options.output_padding.empty()) attributes.set("output_padding", options.output_padding);
  return apply(conv_transpose_def(), {x, w, b}, attributes);
}

const OpDef& conv_transpose_def() {
  static const OpDef def{
      .name = "conv_transpose",
      .doc = "Transposed convolution: y[n,m,i*stride - pad + k*dilation] += x[n,c,i] * w[c,m,k], plus b[m].",
      .inputs = {{"x", "T", "[N, C, spatial...]."},
                 {"w", "T", "[C, M / group, kernel...]."},
                 {"b", "T", "[M], added to each output channel.", Arity::optional}},
      .outputs = {{"y", "T", "[N, M, spatial...]."}},
      .types = {{"T", dtypes::kFloat}},
      .attributes = window_attributes({
          {"group", AttributeType::integer, "Number of groups that channels are divided into.", int64_t{1}},
          {"kernel_shape", AttributeType::integers, "Spatial extents of w, when given; otherwise taken from w."},
          {"output_padding", AttributeType::integers, "Elements added at the end of each spatial axis; default 0."},
          {"output_shape", AttributeType::integers, "Spatial extents of y; pads are then worked out from them."},
      }),
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .cost = cost,
      .onnx = {{"ConvTranspose"}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
