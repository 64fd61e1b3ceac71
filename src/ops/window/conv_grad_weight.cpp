// conv_grad_weight: what flows into the weights of a convolution, as an op of its own. For w[m, c, k] it is
// sum over n and o of gy[n, m, o] * x[n, c, o * stride - pad + k * dilation], c within the group of m; taps outside x
// count as 0. The extents of gy say how many windows there are: at most as many as fit.
//
// conv, conv_transpose and this op are the three derivatives of one trilinear form: each one's gradients are the other
// two. It could be said by conv, with the stride as dilation and the other way round (see the body), but no convolution
// kernel is made for images as weights.
#include "autograph/op_def.h"
#include "autograph/ops/window.h"
#include "base/checked_int.h"
#include "base/join.h"
#include "graph/moved_bytes.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/window/conv_gradients.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

Dim divided(const Dim& channels, int64_t group) {
  return channels.is_known() ? Dim(channels.value() / group) : group == 1 ? channels : Dim::unknown();
}

void check_channels(const InferContext& context, const Shape& x, const Shape& gy) {
  const int64_t group = context.attributes().integer("group");
  context.require<ValueError>(group >= 1, "group", fmt::format("expected 1 or more, got {}", group));
  for (const Shape* shape : {&x, &gy}) {
    if (!shape->has_rank() || !(*shape)[1].is_known()) continue;
    const int64_t channels = (*shape)[1].value();
    context.require<ShapeError>(
        channels % group == 0, "group",
        fmt::format("expected a divisor of the {} channels of {}, got {}", channels, shape == &x ? "x" : "gy", group));
  }
}

void check_windows(const InferContext& context, const Shape& x, const Shape& gy, const WindowSpec& spec) {
  for (size_t axis = 0; axis < spec.kernel.size(); ++axis) {
    const Dim& in = x[static_cast<int64_t>(axis) + 2];
    const Dim& out = gy[static_cast<int64_t>(axis) + 2];
    if (!in.is_known() || !out.is_known()) continue;
    const WindowAxis window = resolve_window(spec, axis, in.value());
    context.require<ShapeError>(
        out.value() <= window.out, "gy",
        fmt::format("expected at most {} windows on spatial axis {} (input {}, kernel {}, stride {}), got {}",
                    window.out, axis, in.value(), window.kernel, window.stride, out.value()));
  }
}

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  const Shape& gy = context.shape(1);
  const Dims kernel = context.attributes().integers("kernel_shape");
  const auto rank = static_cast<int64_t>(kernel.size()) + 2;
  context.require<ValueError>(!kernel.empty(), "kernel_shape", "expected one extent or more, got []");
  check_window_attributes(context, rank - 2);
  for (size_t slot = 0; slot < 2; ++slot) {
    if (context.shape(slot).has_rank()) context.require_rank(slot, rank);
  }
  check_channels(context, x, gy);
  if (x.has_rank() && gy.has_rank()) {
    const bool same_batch = !x[0].is_known() || !gy[0].is_known() || x[0].value() == gy[0].value();
    context.require<ShapeError>(same_batch, "batch",
                                fmt::format("expected that of x {}, got {}", to_string(x), to_string(gy)));
    check_windows(context, x, gy, window_spec(context.attributes(), kernel));
  }
  Shape w = Shape::of_rank(rank);
  if (gy.has_rank()) w[0] = gy[1];
  if (x.has_rank()) w[1] = divided(x[1], context.attributes().integer("group"));
  for (int64_t axis = 2; axis < rank; ++axis) w[axis] = kernel[static_cast<size_t>(axis - 2)];
  context.set_output(0, context.dtype(0), w);
}

template <class T>
void correlate_groups(const OpCall& call, std::span<const WindowAxis> axes, std::vector<double>& sums) {
  const TensorView x = call.input(0);
  const TensorView gy = call.input(1);
  const TensorView w = call.output(0);
  const int64_t group_in = w.dim(1);
  const int64_t group_out = w.dim(0) / call.attributes.integer("group");
  const int64_t in_positions = checked_product(x.dims().subspan(2), "conv_grad_weight");
  const int64_t out_positions = checked_product(gy.dims().subspan(2), "conv_grad_weight");
  const int64_t kernel_positions = checked_product(w.dims().subspan(2), "conv_grad_weight");
  for_each_window(axes, [&](std::span<const int64_t> at, int64_t position) {
    for_each_tap(axes, at, [&](int64_t kernel, int64_t input) {
      for (int64_t row = 0; row < x.dim(0) * w.dim(0); ++row) {
        const int64_t m = row % w.dim(0);
        const double value = static_cast<double>(gy.data<T>()[row * out_positions + position]);
        const int64_t first_channel = row / w.dim(0) * x.dim(1) + m / group_out * group_in;
        for (int64_t c = 0; c < group_in; ++c) {
          const T pixel = x.data<T>()[(first_channel + c) * in_positions + input];
          sums[static_cast<size_t>((m * group_in + c) * kernel_positions + kernel)] +=
              value * static_cast<double>(pixel);
        }
      }
    });
  });
}

void reference(const OpCall& call) {
  const TensorView w = call.output(0);
  const auto axes = conv_grad_weight_windows(call.attributes, call.input(0).dims(), call.input(1).dims());
  std::vector<double> sums(static_cast<size_t>(w.num_elements()), 0.0);
  dispatch<FloatTypes>(w.dtype(), [&]<class T>(TypeTag<T>) {
    correlate_groups<T>(call, axes, sums);
    T* out = w.mutable_data<T>();
    for (size_t i = 0; i < sums.size(); ++i) out[i] = T(sums[i]);
  });
}

std::vector<WindowAxis> known_windows(const Attributes& attributes, const Shape& x, const Shape& gy) {
  Dims in{1, 1}, out{1, 1};
  for (int64_t axis = 2; axis < x.rank(); ++axis) {
    if (!x[axis].is_known() || !gy[axis].is_known()) return {};
    in.push_back(x[axis].value());
    out.push_back(gy[axis].value());
  }
  return conv_grad_weight_windows(attributes, in, out);
}

std::vector<Var> decompose(DecomposeContext& context) {
  const Var& x = context.inputs[0];
  const Var& gy = context.inputs[1];
  AG_CHECK_USER(x.shape().has_rank() && gy.shape().has_rank(), UnsupportedError,
                "[conv_grad_weight] ranks: expected known ones, got x {} and gy {}", to_string(x.shape()),
                to_string(gy.shape()));
  const WindowSpec spec = window_spec(context.attributes, context.attributes.integers("kernel_shape"));
  return {correlate_by_conv(x, gy, spec, context.attributes.integer("group"))};
}

// In x and gy it is bilinear: the gradient takes the place of the weights.
void vjp(VjpContext& c) {
  const Var x = c.in(0), gy = c.in(1);
  const bool are_ranked = x.shape().has_rank() && gy.shape().has_rank();
  if (!are_ranked) c.unsupported("its rule needs known ranks");
  const auto axes = known_windows(c.attributes(), x.shape(), gy.shape());
  const int64_t group = c.attributes().integer("group");
  const WindowSpec spec = window_spec(c.attributes(), c.attributes().get<Dims>("kernel_shape"));
  const Var w = c.gy(0);
  const auto known = !axes.empty();
  if (c.wants(0)) c.set(0, known ? spread_by_weights(gy, w, axes, group) : spread_by_weights_of(gy, w, spec, x, group));
  if (c.wants(1)) c.set(1, known ? convolve_windows(x, w, axes, group) : convolve_windows_of(x, w, spec, gy, group));
}

// Each element of gy meets the pixels that its group's channels have under the kernel.
OpCost cost(const CostContext& context) {
  const Dims w = context.outputs[0].shape().static_dims();
  const double per_element = w[0] == 0 ? 0 : static_cast<double>(checked_product(w, "conv_grad_weight") / w[0]);
  const auto windows = static_cast<double>(*context.inputs[1].shape().num_elements());
  return {.flops = 2.0 * windows * per_element, .bytes = moved_bytes(context)};
}

OpSample sample(Random& random) {
  const int64_t spatial_rank = draw(random, 1, 3);
  const int64_t group = draw_one_of<int64_t>(random, {1, 1, 2, 3});
  Dims x{draw(random, 0, 2), group * draw(random, 1, 2)};
  Dims gy{x[0], group * draw(random, 1, 2)};
  Dims kernel, strides, dilations, pads(static_cast<size_t>(2 * spatial_rank));
  for (int64_t& pad : pads) pad = draw(random, 0, 2);
  OpSample sample;
  for (int64_t axis = 0; axis < spatial_rank; ++axis) {
    kernel.push_back(draw(random, 1, 3));
    dilations.push_back(draw(random, 1, 2));
    strides.push_back(draw(random, 1, 3));
    x.push_back((kernel.back() - 1) * dilations.back() + draw(random, 1, 3));
  }
  sample.attributes = {
      {"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"group", group}};
  const auto axes = resolve_windows(window_spec(sample.attributes, kernel), std::span<const int64_t>(x).subspan(2));
  for (const WindowAxis& axis : axes) gy.push_back(draw(random, std::max<int64_t>(1, axis.out - 1), axis.out));
  sample.inputs = {draw_tensor(random, DType::f32, x), draw_tensor(random, DType::f32, gy)};
  return sample;
}

}  // namespace

std::vector<WindowAxis> conv_grad_weight_windows(const Attributes& attributes, std::span<const int64_t> x,
                                                 std::span<const int64_t> gy) {
  auto axes = resolve_windows(window_spec(attributes, attributes.integers("kernel_shape")), x.subspan(2));
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    axes[axis].out = gy[axis + 2];
    axes[axis].pad_end = axes[axis].reach() - axes[axis].in;
  }
  return axes;
}

Var conv_grad_weight(Var x, Var gy, std::vector<int64_t> kernel, const ConvOptions& options) {
  Attributes attributes{{"group", options.group}, {"kernel_shape", std::move(kernel)}};
  if (!options.strides.empty()) attributes.set("strides", options.strides);
  if (!options.pads.empty()) attributes.set("pads", options.pads);
  if (!options.dilations.empty()) attributes.set("dilations", options.dilations);
  return apply(conv_grad_weight_def(), {x, gy}, attributes);
}

const OpDef& conv_grad_weight_def() {
  static const OpDef def{
      .name = "conv_grad_weight",
      .doc = "Gradient of a convolution's weights: w[m,c,k] = sum of gy[n,m,o] * x[n,c,o*stride - pad + k*dilation].",
      .inputs = {{"x", "T", "[N, C, spatial...]."},
                 {"gy", "T", "[N, M, spatial...], what flows into the output of the convolution."}},
      .outputs = {{"w", "T", "[M, C / group, kernel...]."}},
      .types = {{"T", dtypes::kFloat}},
      .attributes = {{.name = "kernel_shape",
                      .type = AttributeType::integers,
                      .doc = "Spatial extents of the weights.",
                      .required = true},
                     {"strides", AttributeType::integers, "Step of the window on each spatial axis; default 1."},
                     {"pads", AttributeType::integers,
                      "Padding: begin of each spatial axis, then end of each; default 0."},
                     {"dilations", AttributeType::integers,
                      "Distance between window taps on each spatial axis; default 1."},
                     {"group", AttributeType::integer, "Number of groups that channels are divided into.", int64_t{1}}},
      .infer = infer,
      .reference = reference,
      .decompose = decompose,
      .vjp = vjp,
      .cost = cost,
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
