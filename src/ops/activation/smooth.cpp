// Smooth activation functions without attributes: sigmoid, tanh, softplus, softsign, mish; and hard_swish. All are
// arranged so that no intermediate overflows. NaN propagates.

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formula_vjp.h"
#include "ops/elementwise/formula/formulas.h"
#include "ops/elementwise/formula/make_elementwise.h"

namespace autograph {
namespace {

// 1 - tanh(s)^2 as 4 sigmoid(2s) sigmoid(-2s): x would make much of what is left where the difference cancels.
void mish_vjp(VjpContext& c) {
  const Var x = c.in(0);
  const Var soft = softplus(x);
  const Var twice = 2 * soft;
  const Var bend = 4 * sigmoid(twice) * sigmoid(-twice);
  c.set(0, c.gy(0) * (tanh(soft) + x * sigmoid(x) * bend));
}

// 0 at -3 and 1 at 3.
void hard_swish_vjp(VjpContext& c) {
  const Var x = c.in(0);
  const Var above = where(less(x, scalar_like(x, 3)), x / 3 + 0.5, scalar_like(x, 1));
  c.set(0, c.gy(0) * where(less_or_equal(x, scalar_like(x, -3)), scalar_like(x, 0), above));
}

}  // namespace

Var sigmoid(Var x) { return apply(sigmoid_def(), {x}); }
Var tanh(Var x) { return apply(tanh_def(), {x}); }
Var softplus(Var x) { return apply(softplus_def(), {x}); }
Var softsign(Var x) { return apply(softsign_def(), {x}); }
Var mish(Var x) { return apply(mish_def(), {x}); }
Var hard_swish(Var x) { return apply(hard_swish_def(), {x}); }

const OpDef& sigmoid_def() {
  static const OpDef def = make_unary({.name = "sigmoid",
                                       .doc = "y = 1 / (1 + exp(-x)).",
                                       .onnx = "Sigmoid",
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::Sigmoid, FloatTypes>,
                                       .vjp = [](VjpContext& c) { c.set(0, c.gy(0) * (c.out(0) * (1 - c.out(0)))); }});
  return def;
}

const OpDef& tanh_def() {
  static const OpDef def = make_unary({.name = "tanh",
                                       .doc = "y = hyperbolic tangent of x.",
                                       .onnx = "Tanh",
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::Tanh, FloatTypes>,
                                       .vjp = formula_vjp});
  return def;
}

const OpDef& softplus_def() {
  static const OpDef def = make_unary({.name = "softplus",
                                       .doc = "y = log(1 + exp(x)).",
                                       .onnx = "Softplus",
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::Softplus, FloatTypes>,
                                       .vjp = [](VjpContext& c) { c.set(0, c.gy(0) * (sigmoid(c.in(0)))); }});
  return def;
}

const OpDef& softsign_def() {
  static const OpDef def = make_unary({.name = "softsign",
                                       .doc = "y = x / (1 + |x|).",
                                       .onnx = "Softsign",
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::Softsign, FloatTypes>,
                                       .vjp = formula_vjp});
  return def;
}

const OpDef& mish_def() {
  static const OpDef def = make_unary({.name = "mish",
                                       .doc = "y = x * tanh(softplus(x)).",
                                       .onnx = "Mish",
                                       .since = 18,
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::Mish, FloatTypes>,
                                       .vjp = mish_vjp});
  return def;
}

const OpDef& hard_swish_def() {
  static const OpDef def = make_unary({.name = "hard_swish",
                                       .doc = "y = x * max(0, min(1, x / 6 + 1 / 2)).",
                                       .onnx = "HardSwish",
                                       .since = 14,
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::HardSwish, FloatTypes>,
                                       .vjp = hard_swish_vjp});
  return def;
}

}  // namespace autograph
