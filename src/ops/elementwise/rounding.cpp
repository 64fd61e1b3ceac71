// Rounding to whole numbers: down, up, to the nearest (halves to the even neighbour). Zeros keep their sign, NaN and
// infinities stay as they are.

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formulas.h"
#include "ops/elementwise/formula/make_elementwise.h"

namespace autograph {
Var floor(Var x) { return apply(floor_def(), {x}); }
Var ceil(Var x) { return apply(ceil_def(), {x}); }
Var round(Var x) { return apply(round_def(), {x}); }

const OpDef& floor_def() {
  static const OpDef def = make_unary({.name = "floor",
                                       .doc = "y = largest whole number not above x.",
                                       .onnx = "Floor",
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::Floor, FloatTypes>,
                                       .no_grad = "piecewise constant"});
  return def;
}

const OpDef& ceil_def() {
  static const OpDef def = make_unary({.name = "ceil",
                                       .doc = "y = smallest whole number not below x.",
                                       .onnx = "Ceil",
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::Ceil, FloatTypes>,
                                       .no_grad = "piecewise constant"});
  return def;
}

const OpDef& round_def() {
  static const OpDef def = make_unary({.name = "round",
                                       .doc = "y = nearest whole number; halves go to the even one.",
                                       .onnx = "Round",
                                       .since = 11,
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::Round, FloatTypes>,
                                       .no_grad = "piecewise constant"});
  return def;
}

}  // namespace autograph
