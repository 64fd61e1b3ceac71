// relu: y = max(x, 0). NaN propagates. where_positive makes the gradient of x of that of y, in one pass.
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formulas.h"
#include "ops/elementwise/formula/make_elementwise.h"
#include "ops/elementwise/formula/scalar_loops.h"
#include "ops/sample.h"

namespace autograph {
namespace {

// 0 at 0.
void relu_vjp(VjpContext& c) { c.set(0, where_positive(c.gy(0), c.out(0))); }

// Steps of y change nothing.
void where_positive_vjp(VjpContext& c) {
  if (c.wants(0)) c.set(0, where_positive(c.gy(0), c.in(1)));
  if (c.wants(1)) c.set_none(1);
}

std::vector<Var> decompose_where_positive(DecomposeContext& context) {
  const Var x = context.inputs[0], y = context.inputs[1];
  return {where(greater(y, scalar_like(y, 0)), x, scalar_like(x, 0))};
}

}  // namespace

Var relu(Var x) { return apply(relu_def(), {x}); }
Var where_positive(Var x, Var y) { return apply(where_positive_def(), {x, y}); }

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

const OpDef& where_positive_def() {
  static const OpDef def = make_binary({.name = "where_positive",
                                        .doc = "c = a where b is above 0, else 0, also where b is NaN.",
                                        .onnx = "",
                                        .types = dtypes::kFloat,
                                        .scalar = formulas::kLoops<formulas::WherePositive, FloatTypes>,
                                        .vjp = where_positive_vjp,
                                        .decompose = decompose_where_positive});
  return def;
}

}  // namespace autograph
