// group_normalization: y = (x - mean) / sqrt(var + epsilon) * scale[c] + bias[c], mean and population variance of each
// group of channels / num_groups neighbouring channels of each instance.
//
// The reference computes in f64 whatever stash_type says; the decomposition honours it. Opset 18 had scale and bias per
// group: import repeats them for the channels of the group.
#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/normalization.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/normalization/channel_groups.h"
#include "ops/sample.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  infer_channel_groups(context);
  const int64_t groups = context.attributes().integer("num_groups");
  context.require<ValueError>(groups >= 1, "num_groups", fmt::format("expected 1 or more, got {}", groups));
  const Shape& x = context.shape(0);
  if (!x.has_rank() || !x[1].is_known() || x[1].value() % groups == 0) return;
  context.fail<ShapeError>("num_groups",
                           fmt::format("expected a divisor of {} channels, got {}", x[1].value(), groups));
}

void reference(const OpCall& call) { normalize_groups(call, call.attributes.integer("num_groups")); }

std::vector<Var> decompose(DecomposeContext& context) {
  const Var x = context.inputs[0];
  const DType stash = context.attributes.get<DType>("stash_type");
  const auto cast_to = [](Var v, DType dtype) {
    return v.dtype() == dtype ? v : apply(get_op("cast"), {v}, {{"to", dtype}});
  };
  const auto binary = [](std::string_view op, Var a, Var b) { return apply(get_op(op), {a, b}); };
  const auto list = [&](std::vector<int64_t> values) { return constant(context.graph, Tensor::vector(values)); };
  const Var wide = cast_to(x, stash);
  const Var rows = binary("reshape", wide, list({0, context.attributes.integer("num_groups"), -1}));
  const Var last = list({2});
  const Var centered = binary("sub", rows, binary("reduce_mean", rows, last));
  const Var variance = binary("reduce_mean", binary("mul", centered, centered), last);
  const Var epsilon = scalar_like(variance, context.attributes.real("epsilon"));
  const Var normal = binary("div", centered, apply(get_op("sqrt"), {binary("add", variance, epsilon)}));
  const Var like_x = cast_to(binary("reshape", normal, apply(get_op("shape"), {x})), x.dtype());
  std::vector<int64_t> per_channel(static_cast<size_t>(x.rank() - 1), 1);
  per_channel[0] = -1;
  const Var scale = binary("reshape", context.inputs[1], list(per_channel));
  const Var bias = binary("reshape", context.inputs[2], list(per_channel));
  return {binary("add", binary("mul", like_x, scale), bias)};
}

// [groups] -> [channels], each element repeated for the channels of its group.
ValueId per_channel(ForeignNode& node, size_t slot, int64_t groups, int64_t channels) {
  const Shape& given = node.graph.type(node.inputs.at(slot)).shape();
  if (given.is_static() && given.static_dims() == Dims{channels}) return node.inputs[slot];
  const auto call = [&](std::string_view op, ValueId v, std::vector<int64_t> dims) {
    return node.add(get_op(op), {v, node.constant(Tensor::vector(dims))}).front();
  };
  const ValueId column = call("reshape", node.inputs[slot], {groups, 1});
  return call("reshape", call("expand", column, {groups, channels / groups}), {channels});
}

std::vector<ValueId> import_onnx(ForeignNode& node) {
  if (node.opset >= 21) return node.emit();
  const int64_t groups = node.attributes.get_or<int64_t>("num_groups", 0);
  const Shape& x = node.graph.type(node.inputs.at(0)).shape();
  AG_CHECK_USER(x.has_rank() && x.rank() >= 2 && x[1].is_known(), UnsupportedError,
                "[group_normalization] channels: expected a known number, got x of shape {} (node \"{}\")",
                to_string(x), node.provenance.to_string());
  const int64_t channels = x[1].value();
  AG_CHECK_USER(groups >= 1 && channels % groups == 0, ValueError,
                "[group_normalization] num_groups: expected a divisor of {} channels, got {} (node \"{}\")", channels,
                groups, node.provenance.to_string());
  const ValueId scale = per_channel(node, 1, groups, channels);
  const ValueId bias = per_channel(node, 2, groups, channels);
  node.set_input(1, scale);
  node.set_input(2, bias);
  return node.emit();
}

OpSample sample(Random& random) {
  Dims dims = draw_dims(random, 2, 4);
  const int64_t groups = draw(random, 1, 3);
  dims[1] = groups * draw(random, 1, 2);
  return {.inputs = {draw_tensor(random, DType::f32, dims), draw_tensor(random, DType::f32, {dims[1]}),
                     draw_tensor(random, DType::f32, {dims[1]})},
          .attributes = {{"num_groups", groups}, {"epsilon", draw_one_of(random, {1e-5f, 1e-2f})}}};
}

}  // namespace

Var group_normalization(Var x, Var scale, Var bias, int64_t num_groups, float epsilon) {
  return apply(group_normalization_def(), {x, scale, bias}, {{"num_groups", num_groups}, {"epsilon", epsilon}});
}

const OpDef& group_normalization_def() {
  static const OpDef def{
      .name = "group_normalization",
      .doc = "y = (x - mean) / sqrt(var + epsilon) * scale + bias, with statistics of each group of channels.",
      .inputs = {{"x", "T", "[batch, channels, ...]."}, {"scale", "T", "[channels]."}, {"bias", "T", "[channels]."}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"T", dtypes::kFloat}},
      .attributes = {{.name = "num_groups",
                      .type = AttributeType::integer,
                      .doc = "Number of groups, a divisor of the number of channels.",
                      .required = true},
                     {"epsilon", AttributeType::real, "Added to the variance.", 1e-5f},
                     {"stash_type", AttributeType::dtype, "Dtype of the statistics.", DType::f32}},
      .infer = infer,
      .reference = reference,
      .decompose = decompose,
      .onnx = {{.name = "GroupNormalization", .since = 18, .import = import_onnx, .export_since = 21}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
