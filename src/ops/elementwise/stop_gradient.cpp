// stop_gradient: y = x; to differentiation a constant.
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {
namespace {

void infer(InferContext& context) { context.set_output(0, context.input(0)); }

std::vector<Var> decompose(DecomposeContext& context) { return {identity(context.inputs[0])}; }

}  // namespace

Var stop_gradient(Var x) { return apply(stop_gradient_def(), {x}); }

const OpDef& stop_gradient_def() {
  static const OpDef def{
      .name = "stop_gradient",
      .doc = "y = x, through which no gradient flows.",
      .inputs = {{"x", "T", "Any shape."}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"T", dtypes::kAll}},
      .infer = infer,
      .decompose = decompose,
      .no_grad = "it is what stops gradients",
      .sample = sample_unary,
  };
  return def;
}

}  // namespace autograph
