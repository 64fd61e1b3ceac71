// Comparisons: equal, less, greater, less_or_equal, greater_or_equal. Comparisons with NaN are false; equal also takes
// bools and strings.
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formulas.h"
#include "ops/elementwise/formula/make_elementwise.h"

namespace autograph {
namespace {

// Small integers, so that equal elements occur.
OpSample sample_equal(Random& random) {
  return draw_bool(random) ? sample_binary_of<DType::i64, 0, 2>(random) : sample_binary(random);
}

OpDef make_ordering(std::string_view name, std::string_view doc, std::string_view onnx, int since,
                    ScalarLoopFn scalar) {
  return make_binary_predicate(
      {.name = name, .doc = doc, .onnx = onnx, .since = since, .types = dtypes::kNumeric, .scalar = scalar});
}

}  // namespace

Var equal(Var a, Var b) { return apply(equal_def(), {a, b}); }
Var less(Var a, Var b) { return apply(less_def(), {a, b}); }
Var greater(Var a, Var b) { return apply(greater_def(), {a, b}); }
Var less_or_equal(Var a, Var b) { return apply(less_or_equal_def(), {a, b}); }
Var greater_or_equal(Var a, Var b) { return apply(greater_or_equal_def(), {a, b}); }

const OpDef& equal_def() {
  static const OpDef def = make_binary_predicate(
      {.name = "equal",
       .doc = "c = a == b; also for bools and strings.",
       .onnx = "Equal",
       .since = 7,
       .types = dtypes::kNumeric | dtypes::kBool | dtypes::kString,
       .scalar = formulas::kPredicateLoops<formulas::Equal, Concat<NumericTypes, TypeList<bool, std::string>>>,
       .traits = {.commutative = true},
       .sample = sample_equal});
  return def;
}

const OpDef& less_def() {
  static const OpDef def =
      make_ordering("less", "c = a < b.", "Less", 7, formulas::kPredicateLoops<formulas::Less, NumericTypes>);
  return def;
}

const OpDef& greater_def() {
  static const OpDef def =
      make_ordering("greater", "c = a > b.", "Greater", 7, formulas::kPredicateLoops<formulas::Greater, NumericTypes>);
  return def;
}

const OpDef& less_or_equal_def() {
  static const OpDef def = make_ordering("less_or_equal", "c = a <= b.", "LessOrEqual", 12,
                                         formulas::kPredicateLoops<formulas::LessOrEqual, NumericTypes>);
  return def;
}

const OpDef& greater_or_equal_def() {
  static const OpDef def = make_ordering("greater_or_equal", "c = a >= b.", "GreaterOrEqual", 12,
                                         formulas::kPredicateLoops<formulas::GreaterOrEqual, NumericTypes>);
  return def;
}

}  // namespace autograph
