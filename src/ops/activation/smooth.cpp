// Smooth activation functions without attributes: sigmoid, tanh, softplus, softsign, mish; and hard_swish. All are
// arranged so that no intermediate overflows. NaN propagates.

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "ops/defs.h"
#include "ops/elementwise/formulas.h"
#include "ops/elementwise/make_elementwise.h"

namespace autograph {
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
                                       .scalar = formulas::kLoops<formulas::Sigmoid, FloatTypes>});
  return def;
}

const OpDef& tanh_def() {
  static const OpDef def = make_unary({.name = "tanh",
                                       .doc = "y = hyperbolic tangent of x.",
                                       .onnx = "Tanh",
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::Tanh, FloatTypes>});
  return def;
}

const OpDef& softplus_def() {
  static const OpDef def = make_unary({.name = "softplus",
                                       .doc = "y = log(1 + exp(x)).",
                                       .onnx = "Softplus",
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::Softplus, FloatTypes>});
  return def;
}

const OpDef& softsign_def() {
  static const OpDef def = make_unary({.name = "softsign",
                                       .doc = "y = x / (1 + |x|).",
                                       .onnx = "Softsign",
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::Softsign, FloatTypes>});
  return def;
}

const OpDef& mish_def() {
  static const OpDef def = make_unary({.name = "mish",
                                       .doc = "y = x * tanh(softplus(x)).",
                                       .onnx = "Mish",
                                       .since = 18,
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::Mish, FloatTypes>});
  return def;
}

const OpDef& hard_swish_def() {
  static const OpDef def = make_unary({.name = "hard_swish",
                                       .doc = "y = x * max(0, min(1, x / 6 + 1 / 2)).",
                                       .onnx = "HardSwish",
                                       .since = 14,
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::HardSwish, FloatTypes>});
  return def;
}

}  // namespace autograph
