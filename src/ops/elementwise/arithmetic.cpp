// Arithmetic on numbers of one dtype, with broadcasting: add, sub, mul, div; and abs, neg, sign of one number.
//
// Signed integers wrap (abs and neg of the lowest value give it back); integer division truncates towards zero and
// x / 0 is 0; sign of NaN is NaN.
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formulas.h"
#include "ops/elementwise/make_elementwise.h"

namespace autograph {
namespace {

// The sample keeps divisors away from zero, where results depend on rounding.
OpSample sample_div(Random& random) {
  const Dims dims = draw_dims(random);
  return {.inputs = {draw_tensor(random, DType::f32, dims),
                     draw_tensor(random, DType::f32, draw_broadcastable(random, dims), 0.5, 2.0)}};
}

}  // namespace

Var add(Var a, Var b) { return apply(add_def(), {a, b}); }
Var sub(Var a, Var b) { return apply(sub_def(), {a, b}); }
Var mul(Var a, Var b) { return apply(mul_def(), {a, b}); }
Var div(Var a, Var b) { return apply(div_def(), {a, b}); }
Var neg(Var x) { return apply(neg_def(), {x}); }
Var abs(Var x) { return apply(abs_def(), {x}); }
Var sign(Var x) { return apply(sign_def(), {x}); }

const OpDef& add_def() {
  static const OpDef def = make_binary({.name = "add",
                                        .doc = "c = a + b.",
                                        .onnx = "Add",
                                        .since = 7,
                                        .types = dtypes::kNumeric,
                                        .scalar = formulas::kLoops<formulas::Add, NumericTypes>,
                                        .traits = {.commutative = true, .associative = true}});
  return def;
}

const OpDef& sub_def() {
  static const OpDef def = make_binary({.name = "sub",
                                        .doc = "c = a - b.",
                                        .onnx = "Sub",
                                        .since = 7,
                                        .types = dtypes::kNumeric,
                                        .scalar = formulas::kLoops<formulas::Sub, NumericTypes>});
  return def;
}

const OpDef& mul_def() {
  static const OpDef def = make_binary({.name = "mul",
                                        .doc = "c = a * b.",
                                        .onnx = "Mul",
                                        .since = 7,
                                        .types = dtypes::kNumeric,
                                        .scalar = formulas::kLoops<formulas::Mul, NumericTypes>,
                                        .traits = {.commutative = true, .associative = true}});
  return def;
}

const OpDef& div_def() {
  static const OpDef def = make_binary({.name = "div",
                                        .doc = "c = a / b; integers truncate towards zero and x / 0 is 0.",
                                        .onnx = "Div",
                                        .since = 7,
                                        .types = dtypes::kNumeric,
                                        .scalar = formulas::kLoops<formulas::Div, NumericTypes>,
                                        .sample = sample_div});
  return def;
}

const OpDef& neg_def() {
  static const OpDef def = make_unary({.name = "neg",
                                       .doc = "y = -x.",
                                       .onnx = "Neg",
                                       .types = dtypes::kFloat | dtypes::kSigned,
                                       .scalar = formulas::kLoops<formulas::Neg, Concat<FloatTypes, SignedTypes>>});
  return def;
}

const OpDef& abs_def() {
  static const OpDef def = make_unary({.name = "abs",
                                       .doc = "y = |x|.",
                                       .onnx = "Abs",
                                       .types = dtypes::kNumeric,
                                       .scalar = formulas::kLoops<formulas::Abs, NumericTypes>});
  return def;
}

const OpDef& sign_def() {
  static const OpDef def = make_unary({.name = "sign",
                                       .doc = "y = -1, 0 or 1 as x is negative, zero or positive.",
                                       .onnx = "Sign",
                                       .since = 9,
                                       .types = dtypes::kNumeric,
                                       .scalar = formulas::kLoops<formulas::Sign, NumericTypes>});
  return def;
}

}  // namespace autograph
