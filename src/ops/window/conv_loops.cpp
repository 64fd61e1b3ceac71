#include "ops/window/conv_loops.h"

#include "base/checked_int.h"
#include "base/join.h"
#include "graph/moved_bytes.h"
#include "ops/sample.h"

namespace autograph {
namespace {

// Throws unless the channels of x, w and bias agree with `group`, as far as they are known.
void check_channels(const InferContext& context, const Shape& x, const Shape& w, const Shape* bias) {
  const int64_t group = context.attributes().integer("group");
  if (group < 1) context.fail<ValueError>("group", fmt::format("expected 1 or more, got {}", group));
  const Dim& channels = x[1];
  const Dim& out_channels = w[0];
  const Dim& per_group = w[1];
  if (channels.is_known() && per_group.is_known() &&
      checked_mul(per_group.value(), group, "conv") != channels.value()) {
    context.fail<ShapeError>("channels", fmt::format("expected {} = {} (input channels of the weights) * {} (group), "
                                                     "got {} (x {}, w {})",
                                                     per_group.value() * group, per_group.value(), group,
                                                     channels.value(), to_string(x), to_string(w)));
  }
  if (out_channels.is_known() && out_channels.value() % group != 0) {
    context.fail<ShapeError>(
        "group", fmt::format("expected a divisor of the {} output channels, got {}", out_channels.value(), group));
  }
  if (!bias || !bias->has_rank()) return;
  const bool fits = bias->rank() == 1 &&
                    (!(*bias)[0].is_known() || !out_channels.is_known() || (*bias)[0].value() == out_channels.value());
  if (!fits) {
    context.fail<ShapeError>("bias", fmt::format("expected [{}], got {}", to_string(out_channels), to_string(*bias)));
  }
}

// The kernel's extents where w or kernel_shape tells them all.
std::optional<Dims> find_kernel(const InferContext& context, const Shape& w, int64_t spatial_rank) {
  const auto* given = context.attributes().find_as<Dims>("kernel_shape");
  Dims kernel;
  for (int64_t axis = 0; axis < spatial_rank; ++axis) {
    const Dim extent = w.has_rank() ? w[axis + 2] : Dim::unknown();
    if (given && extent.is_known() && extent.value() != (*given)[static_cast<size_t>(axis)]) {
      context.fail<ShapeError>("kernel_shape", fmt::format("expected the weight's spatial extents {}, got {}",
                                                           to_string(w), bracketed(*given)));
    }
    if (!given && !extent.is_known()) return std::nullopt;
    kernel.push_back(given ? (*given)[static_cast<size_t>(axis)] : extent.value());
  }
  return kernel;
}

}  // namespace

void check_zero_point(const InferContext& context, size_t slot, const Dim& channels) {
  if (!context.has_input(slot) || !context.shape(slot).has_rank()) return;
  const Shape& shape = context.shape(slot);
  const bool fits = shape.rank() == 0 || (shape.rank() == 1 && (!shape[0].is_known() || !channels.is_known() ||
                                                                shape[0].value() == 1 || shape[0] == channels));
  context.require<ShapeError>(
      fits, fmt::format("input {}", slot),
      fmt::format("expected a scalar, [1] or [{}], got {}", to_string(channels), to_string(shape)));
}

std::vector<AttributeSpec> conv_attributes() {
  return window_attributes({
      {"group", AttributeType::integer, "Number of groups that channels are divided into.", int64_t{1}},
      {"kernel_shape", AttributeType::integers, "Spatial extents of w, when given; otherwise taken from w."},
  });
}

Shape infer_conv_shape(InferContext& context, size_t x_slot, size_t w_slot, size_t bias_slot) {
  const Shape& x = context.shape(x_slot);
  const Shape& w = context.shape(w_slot);
  if (!x.has_rank() && !w.has_rank()) return Shape::unknown();
  const int64_t rank = x.has_rank() ? x.rank() : w.rank();
  if (rank < 3) {
    context.fail<ShapeError>("x", fmt::format("expected [N, C, spatial...], got {}", to_string(x.has_rank() ? x : w)));
  }
  context.require_rank(w_slot, rank);
  const int64_t spatial_rank = rank - 2;
  check_window_attributes(context, spatial_rank);
  if (x.has_rank() && w.has_rank()) {
    check_channels(context, x, w, context.has_input(bias_slot) ? &context.shape(bias_slot) : nullptr);
  }
  Shape y = Shape::of_rank(rank);
  if (x.has_rank()) y[0] = x[0];
  if (w.has_rank()) y[1] = w[0];
  const auto kernel = find_kernel(context, w, spatial_rank);
  if (!kernel || !x.has_rank()) return y;
  for (const int64_t extent : *kernel) {
    if (extent >= 1) continue;
    context.fail<ShapeError>("kernel", fmt::format("expected extents of 1 or more, got {}", to_string(w)));
  }
  const WindowSpec spec = window_spec(context.attributes(), *kernel);
  for (int64_t axis = 0; axis < spatial_rank; ++axis) {
    y[axis + 2] = window_extent(context, spec, static_cast<size_t>(axis), x[axis + 2]);
  }
  return y;
}

ConvSizes conv_sizes(const Attributes& attributes, const TensorView& x, const TensorView& w) {
  ConvSizes sizes;
  sizes.batch = x.dim(0);
  sizes.in_channels = x.dim(1);
  sizes.out_channels = w.dim(0);
  sizes.group = attributes.integer("group");
  const WindowSpec spec = window_spec(attributes, Dims(w.dims().begin() + 2, w.dims().end()));
  sizes.axes = resolve_windows(spec, x.dims().subspan(2));
  sizes.in_positions = checked_product(x.dims().subspan(2), "conv");
  sizes.kernel_positions = checked_product(w.dims().subspan(2), "conv");
  sizes.out_positions = 1;
  for (const WindowAxis& axis : sizes.axes) sizes.out_positions = checked_mul(sizes.out_positions, axis.out, "conv");
  return sizes;
}

OpCost conv_cost(const CostContext& context, size_t x_slot, size_t w_slot) {
  OpCost cost{.bytes = moved_bytes(context)};
  // Each weight [m, c, k] is multiplied once per output position of channel m.
  const Dims w = context.inputs[w_slot].shape().static_dims();
  const double per_output = w[0] == 0 ? 0 : static_cast<double>(checked_product(w, "conv")) / static_cast<double>(w[0]);
  const bool has_work = *context.inputs[x_slot].shape().num_elements() > 0;
  if (has_work) cost.flops = 2.0 * per_output * static_cast<double>(*context.outputs[0].shape().num_elements());
  return cost;
}

OpSample sample_conv(Random& random) {
  const int64_t spatial_rank = draw(random, 1, 3);
  const int64_t group = draw_one_of<int64_t>(random, {1, 1, 2, 3});
  const int64_t group_in = draw(random, 1, 2);
  const int64_t out_channels = group * draw(random, 1, 2);
  Dims x{draw(random, 1, 2), group * group_in};
  Dims w{out_channels, group_in};
  Dims strides;
  Dims dilations;
  Dims pads(static_cast<size_t>(2 * spatial_rank), 0);
  for (int64_t axis = 0; axis < spatial_rank; ++axis) {
    w.push_back(draw(random, 1, 3));
    dilations.push_back(draw(random, 1, 2));
    strides.push_back(draw(random, 1, 3));
    // At least as large as the span of the window, so that it fits without padding.
    x.push_back((w.back() - 1) * dilations.back() + draw(random, 1, 3));
  }
  for (int64_t& pad : pads) pad = draw(random, 0, 2);
  OpSample sample;
  sample.attributes = {{"strides", strides}, {"dilations", dilations}, {"group", group}};
  const std::string auto_pad =
      draw_one_of<std::string>(random, {"NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"});
  sample.attributes.set("auto_pad", auto_pad);
  if (auto_pad == "NOTSET") sample.attributes.set("pads", pads);
  if (draw_bool(random)) sample.attributes.set("kernel_shape", Dims(w.begin() + 2, w.end()));
  sample.inputs = {draw_tensor(random, DType::f32, x), draw_tensor(random, DType::f32, w)};
  if (draw_bool(random)) sample.inputs.emplace_back(draw_tensor(random, DType::f32, {out_channels}));
  return sample;
}

}  // namespace autograph
