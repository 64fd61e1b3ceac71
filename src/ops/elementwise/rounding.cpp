// Rounding to whole numbers: down, up, to the nearest (halves to the even neighbour). Zeros keep their sign, NaN and
// infinities stay as they are.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/make_elementwise.h"
#include "ops/elementwise/scalar_loops.h"

namespace autograph {
namespace {

struct Floor {
  explicit Floor(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return std::floor(x);
  }
};

struct Ceil {
  explicit Ceil(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return std::ceil(x);
  }
};

struct Round {
  explicit Round(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return std::nearbyint(x);
  }
};

}  // namespace

Var floor(Var x) { return apply(floor_def(), {x}); }
Var ceil(Var x) { return apply(ceil_def(), {x}); }
Var round(Var x) { return apply(round_def(), {x}); }

const OpDef& floor_def() {
  static const OpDef def = make_unary({.name = "floor",
                                       .doc = "y = largest whole number not above x.",
                                       .onnx = "Floor",
                                       .types = dtypes::kFloat,
                                       .scalar = same_type_loop<Floor, 1, FloatTypes>});
  return def;
}

const OpDef& ceil_def() {
  static const OpDef def = make_unary({.name = "ceil",
                                       .doc = "y = smallest whole number not below x.",
                                       .onnx = "Ceil",
                                       .types = dtypes::kFloat,
                                       .scalar = same_type_loop<Ceil, 1, FloatTypes>});
  return def;
}

const OpDef& round_def() {
  static const OpDef def = make_unary({.name = "round",
                                       .doc = "y = nearest whole number; halves go to the even one.",
                                       .onnx = "Round",
                                       .since = 11,
                                       .types = dtypes::kFloat,
                                       .scalar = same_type_loop<Round, 1, FloatTypes>});
  return def;
}

}  // namespace autograph
