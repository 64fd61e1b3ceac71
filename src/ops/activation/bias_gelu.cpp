// bias_gelu: y = gelu(x + bias), the exact GELU. A contrib op of optimised ONNX files; it has no kernel of its own and
// runs as its body.
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/scalar_loops.h"
#include "ops/sample.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  context.require_rank(1, 1);
  infer_elementwise(context);
}

std::vector<Var> decompose(DecomposeContext& context) { return {gelu(add(context.inputs[0], context.inputs[1]))}; }

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 1, 4);
  return {.inputs = {draw_tensor(random, DType::f32, dims), draw_tensor(random, DType::f32, {dims.back()})}};
}

}  // namespace

Var bias_gelu(Var x, Var bias) { return apply(bias_gelu_def(), {x, bias}); }

const OpDef& bias_gelu_def() {
  static const OpDef def{
      .name = "bias_gelu",
      .doc = "y = gelu(x + bias), element by element.",
      .inputs = {{"x", "T", "Any shape of rank 1 or more."},
                 {"bias", "T", "One element per element of the last axis."}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"T", dtypes::kFloat}},
      .infer = infer,
      .decompose = decompose,
      .traits = {.elementwise = true},
      .onnx = {{.name = "BiasGelu", .domain = "com.microsoft"}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
