// Bitwise logic on integers: bitwise_and, bitwise_or, bitwise_xor, bitwise_not.
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/make_elementwise.h"
#include "ops/elementwise/formula/scalar_loops.h"

namespace autograph {
namespace {

constexpr std::string_view kNoGradient = "integers have no gradient";

struct BitwiseAnd {
  explicit BitwiseAnd(const Attributes&) {}
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};

struct BitwiseOr {
  explicit BitwiseOr(const Attributes&) {}
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};

struct BitwiseXor {
  explicit BitwiseXor(const Attributes&) {}
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

struct BitwiseNot {
  explicit BitwiseNot(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(~x);
  }
};

OpDef make_bitwise(std::string_view name, std::string_view doc, std::string_view onnx, ScalarLoopFn scalar) {
  return make_binary({.name = name,
                      .doc = doc,
                      .onnx = onnx,
                      .since = 18,
                      .types = dtypes::kInteger,
                      .scalar = scalar,
                      .traits = {.commutative = true, .associative = true},
                      .no_grad = kNoGradient,
                      .sample = sample_binary_of<DType::i32, -100, 100>});
}

}  // namespace

Var bitwise_and(Var a, Var b) { return apply(bitwise_and_def(), {a, b}); }
Var bitwise_or(Var a, Var b) { return apply(bitwise_or_def(), {a, b}); }
Var bitwise_xor(Var a, Var b) { return apply(bitwise_xor_def(), {a, b}); }
Var bitwise_not(Var x) { return apply(bitwise_not_def(), {x}); }

const OpDef& bitwise_and_def() {
  static const OpDef def =
      make_bitwise("bitwise_and", "c = a & b.", "BitwiseAnd", same_type_loop<BitwiseAnd, 2, IntegerTypes>);
  return def;
}

const OpDef& bitwise_or_def() {
  static const OpDef def =
      make_bitwise("bitwise_or", "c = a | b.", "BitwiseOr", same_type_loop<BitwiseOr, 2, IntegerTypes>);
  return def;
}

const OpDef& bitwise_xor_def() {
  static const OpDef def =
      make_bitwise("bitwise_xor", "c = a ^ b, bit by bit.", "BitwiseXor", same_type_loop<BitwiseXor, 2, IntegerTypes>);
  return def;
}

const OpDef& bitwise_not_def() {
  static const OpDef def = make_unary({.name = "bitwise_not",
                                       .doc = "y = x with every bit inverted.",
                                       .onnx = "BitwiseNot",
                                       .since = 18,
                                       .types = dtypes::kInteger,
                                       .scalar = same_type_loop<BitwiseNot, 1, IntegerTypes>,
                                       .no_grad = kNoGradient,
                                       .sample = sample_unary_of<DType::i32, -100, 100>});
  return def;
}

}  // namespace autograph
