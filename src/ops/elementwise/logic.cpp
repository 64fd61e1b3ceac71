// Logic on bools: and, or, xor, not. (The builders are logical_and and so on: the bare names are C++ keywords.)
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formulas.h"
#include "ops/elementwise/formula/make_elementwise.h"

namespace autograph {
namespace {

using BoolTypes = TypeList<bool>;

OpDef make_logic(std::string_view name, std::string_view doc, std::string_view onnx, ScalarLoopFn scalar) {
  return make_binary_predicate({.name = name,
                                .doc = doc,
                                .onnx = onnx,
                                .since = 7,
                                .types = dtypes::kBool,
                                .scalar = scalar,
                                .traits = {.commutative = true, .associative = true, .in_place_ok = true},
                                .sample = sample_binary_of<DType::boolean, 0, 1>});
}

}  // namespace

Var logical_and(Var a, Var b) { return apply(and_def(), {a, b}); }
Var logical_or(Var a, Var b) { return apply(or_def(), {a, b}); }
Var logical_xor(Var a, Var b) { return apply(xor_def(), {a, b}); }
Var logical_not(Var x) { return apply(not_def(), {x}); }

const OpDef& and_def() {
  static const OpDef def =
      make_logic("and", "c = a and b.", "And", formulas::kPredicateLoops<formulas::And, BoolTypes>);
  return def;
}

const OpDef& or_def() {
  static const OpDef def = make_logic("or", "c = a or b.", "Or", formulas::kPredicateLoops<formulas::Or, BoolTypes>);
  return def;
}

const OpDef& xor_def() {
  static const OpDef def =
      make_logic("xor", "c = either a or b, not both.", "Xor", formulas::kPredicateLoops<formulas::Xor, BoolTypes>);
  return def;
}

const OpDef& not_def() {
  static const OpDef def = make_unary_predicate({.name = "not",
                                                 .doc = "y = not x.",
                                                 .onnx = "Not",
                                                 .types = dtypes::kBool,
                                                 .scalar = formulas::kPredicateLoops<formulas::Not, BoolTypes>,
                                                 .traits = {.in_place_ok = true},
                                                 .sample = sample_unary_of<DType::boolean, 0, 1>});
  return def;
}

}  // namespace autograph
