// instance_normalization: y = (x - mean) / sqrt(var + epsilon) * scale[c] + bias[c], mean and population variance of
// each channel of each instance.
#include "autograph/op_def.h"
#include "autograph/ops/normalization.h"
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
      .onnx = {{.name = "InstanceNormalization", .since = 6}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
