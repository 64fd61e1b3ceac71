// Exponential, logarithm, square root, reciprocal and the error function. log and sqrt of negative numbers give NaN,
// log(0) is -inf, 1 / 0 is infinite with the sign of the zero.
// erf takes integers too, as ONNX did before opset 13, and truncates its result.

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formula_vjp.h"
#include "ops/elementwise/formula/formulas.h"
#include "ops/elementwise/formula/make_elementwise.h"
#include "ops/gradients.h"

namespace autograph {
Var exp(Var x) { return apply(exp_def(), {x}); }
Var log(Var x) { return apply(log_def(), {x}); }
Var sqrt(Var x) { return apply(sqrt_def(), {x}); }
Var reciprocal(Var x) { return apply(reciprocal_def(), {x}); }
Var erf(Var x) { return apply(erf_def(), {x}); }

const OpDef& exp_def() {
  static const OpDef def = make_unary({.name = "exp",
                                       .doc = "y = e ^ x.",
                                       .onnx = "Exp",
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::Exp, FloatTypes>,
                                       .vjp = [](VjpContext& c) { c.set(0, times_slope(c.gy(0), c.out(0))); }});
  return def;
}

const OpDef& log_def() {
  static const OpDef def =
      make_unary({.name = "log",
                  .doc = "y = natural logarithm of x; NaN below 0.",
                  .onnx = "Log",
                  .types = dtypes::kFloat,
                  .scalar = formulas::kLoops<formulas::Log, FloatTypes>,
                  .vjp = [](VjpContext& c) { c.set(0, times_slope(c.gy(0), reciprocal(c.in(0)))); },
                  .sample = sample_unary_of<DType::f32, 1, 4>});
  return def;
}

const OpDef& sqrt_def() {
  static const OpDef def = make_unary({.name = "sqrt",
                                       .doc = "y = square root of x; NaN below 0.",
                                       .onnx = "Sqrt",
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::Sqrt, FloatTypes>,
                                       .vjp = [](VjpContext& c) { c.set(0, times_slope(c.gy(0), 0.5 / c.out(0))); },
                                       .sample = sample_unary_of<DType::f32, 0, 4>});
  return def;
}

const OpDef& reciprocal_def() {
  static const OpDef def =
      make_unary({.name = "reciprocal",
                  .doc = "y = 1 / x.",
                  .onnx = "Reciprocal",
                  .types = dtypes::kFloat,
                  .scalar = formulas::kLoops<formulas::Reciprocal, FloatTypes>,
                  .vjp = [](VjpContext& c) { c.set(0, times_slope(c.gy(0), -mul_no_nan(c.out(0), c.out(0)))); },
                  .sample = sample_unary_of<DType::f32, 1, 4>});
  return def;
}

const OpDef& erf_def() {
  static const OpDef def = make_unary({.name = "erf",
                                       .doc = "y = 2 / sqrt(pi) * integral of exp(-t^2) from 0 to x.",
                                       .onnx = "Erf",
                                       .since = 9,
                                       .types = dtypes::kNumeric,
                                       .scalar = formulas::kLoops<formulas::Erf, NumericTypes>,
                                       .vjp = formula_vjp});
  return def;
}

}  // namespace autograph
