// Logic on bools: and, or, xor, not. (The builders are logical_and and so on: the bare names are C++ keywords.)
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/make_elementwise.h"
#include "ops/elementwise/scalar_loops.h"

namespace autograph {
namespace {

using BoolTypes = TypeList<bool>;

struct And {
  explicit And(const Attributes&) {}
  bool operator()(bool a, bool b) const { return a && b; }
};

struct Or {
  explicit Or(const Attributes&) {}
  bool operator()(bool a, bool b) const { return a || b; }
};

struct Xor {
  explicit Xor(const Attributes&) {}
  bool operator()(bool a, bool b) const { return a != b; }
};

struct Not {
  explicit Not(const Attributes&) {}
  bool operator()(bool x) const { return !x; }
};

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
  static const OpDef def = make_logic("and", "c = a and b.", "And", predicate_loop<And, 2, BoolTypes>);
  return def;
}

const OpDef& or_def() {
  static const OpDef def = make_logic("or", "c = a or b.", "Or", predicate_loop<Or, 2, BoolTypes>);
  return def;
}

const OpDef& xor_def() {
  static const OpDef def = make_logic("xor", "c = either a or b, not both.", "Xor", predicate_loop<Xor, 2, BoolTypes>);
  return def;
}

const OpDef& not_def() {
  static const OpDef def = make_unary_predicate({.name = "not",
                                                 .doc = "y = not x.",
                                                 .onnx = "Not",
                                                 .types = dtypes::kBool,
                                                 .scalar = predicate_loop<Not, 1, BoolTypes>,
                                                 .traits = {.in_place_ok = true},
                                                 .sample = sample_unary_of<DType::boolean, 0, 1>});
  return def;
}

}  // namespace autograph
