// instance_normalization: y = (x - mean) / sqrt(var + epsilon) * scale[c] + bias[c], mean and population variance of
// each channel of each instance.
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/normalization/channel_groups.h"
#include "ops/sample.h"

namespace autograph {
namespace {

void reference(const OpCall& call) { normalize_groups(call, call.input(0).dim(1)); }

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 2, 4);
  return {.inputs = {draw_tensor(random, DType::f32, dims), draw_tensor(random, DType::f32, {dims[1]}),
                     draw_tensor(random, DType::f32, {dims[1]})},
          .attributes = {{"epsilon", draw_one_of(random, {1e-5f, 1e-2f})}}};
}

void vjp(VjpContext& c) {
  const Var x = c.in(0);
  if (!x.shape().has_rank()) c.unsupported("its rule needs a known rank");
  std::vector<int64_t> axes, ones;
  for (int64_t axis = 2; axis < x.rank(); ++axis) {
    axes.push_back(axis);
    ones.push_back(axis - 1);
  }
  // Without spatial dims each element is its own mean.
  const auto mean = [&](const Var& value) { return axes.empty() ? value : reduce_mean(value, axes); };
  const Var centred = x - mean(x);
  const Var inverse = reciprocal(sqrt(mean(centred * centred) + double{c.attributes().real("epsilon")}));
  const Var normal = centred * inverse;
  if (c.wants(0)) {
    const Var g = c.gy(0) * (ones.empty() ? c.in(1) : unsqueeze(c.in(1), ones));
    c.set(0, inverse * (g - mean(g) - normal * mean(g * normal)));
  }
  axes.insert(axes.begin(), 0);
  if (c.wants(1)) c.set(1, reduce_sum(c.gy(0) * normal, axes, false));
  if (c.wants(2)) c.set(2, reduce_sum(c.gy(0), axes, false));
}

}  // namespace

Var instance_normalization(Var x, Var scale, Var bias, float epsilon) {
  return apply(instance_normalization_def(), {x, scale, bias}, {{"epsilon", epsilon}});
}

const OpDef& instance_normalization_def() {
  static const OpDef def{
      .name = "instance_normalization",
      .doc = "y = (x - mean) / sqrt(var + epsilon) * scale + bias, with statistics of each channel of each instance.",
      .inputs = {{"x", "T", "[batch, channels, ...]."}, {"scale", "T", "[channels]."}, {"bias", "T", "[channels]."}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"T", dtypes::kFloat}},
      .attributes = {{"epsilon", AttributeType::real, "Added to the variance.", 1e-5f}},
      .infer = infer_channel_groups,
      .reference = reference,
      .vjp = vjp,
      .onnx = {{.name = "InstanceNormalization", .since = 6}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
