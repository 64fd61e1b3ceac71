// relu: y = max(x, 0). NaN propagates.
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formulas.h"
#include "ops/elementwise/formula/scalar_loops.h"
#include "ops/sample.h"

namespace autograph {
namespace {

// 0 at 0.
void relu_vjp(VjpContext& c) {
  const Var y = c.out(0);
  c.set(0, where(greater(y, scalar_like(y, 0)), c.gy(0), scalar_like(y, 0)));
}

}  // namespace

Var relu(Var x) { return apply(relu_def(), {x}); }

const OpDef& relu_def() {
  static const OpDef def{
      .name = "relu",
      .doc = "y = max(x, 0), element by element.",
      .inputs = {{"x", "T", "Any shape."}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"T", dtypes::kFloat | dtypes::kSigned}},
      .infer = infer_elementwise,
      .scalar = formulas::kLoops<formulas::Relu, Concat<FloatTypes, SignedTypes>>,
      .vjp = relu_vjp,
      .traits = {.elementwise = true, .in_place_ok = true},
      .onnx = {{"Relu"}},
      .sample = sample_unary,
  };
  return def;
}

}  // namespace autograph
