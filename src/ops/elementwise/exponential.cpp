// Exponential, logarithm, square root, reciprocal and the error function. log and sqrt of negative numbers give NaN,
// log(0) is -inf, 1 / 0 is infinite with the sign of the zero.
// erf takes integers too, as ONNX did before opset 13, and truncates its result.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/make_elementwise.h"
#include "ops/elementwise/scalar_loops.h"

namespace autograph {
namespace {

struct Exp {
  explicit Exp(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return std::exp(x);
  }
};

struct Log {
  explicit Log(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return std::log(x);
  }
};

struct Sqrt {
  explicit Sqrt(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return std::sqrt(x);
  }
};

struct Reciprocal {
  explicit Reciprocal(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return T(1) / x;
  }
};

struct Erf {
  explicit Erf(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(std::erf(x));
  }
};

}  // namespace

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
                                       .scalar = same_type_loop<Exp, 1, FloatTypes>});
  return def;
}

const OpDef& log_def() {
  static const OpDef def = make_unary({.name = "log",
                                       .doc = "y = natural logarithm of x; NaN below 0.",
                                       .onnx = "Log",
                                       .types = dtypes::kFloat,
                                       .scalar = same_type_loop<Log, 1, FloatTypes>,
                                       .sample = sample_unary_of<DType::f32, 1, 4>});
  return def;
}

const OpDef& sqrt_def() {
  static const OpDef def = make_unary({.name = "sqrt",
                                       .doc = "y = square root of x; NaN below 0.",
                                       .onnx = "Sqrt",
                                       .types = dtypes::kFloat,
                                       .scalar = same_type_loop<Sqrt, 1, FloatTypes>,
                                       .sample = sample_unary_of<DType::f32, 0, 4>});
  return def;
}

const OpDef& reciprocal_def() {
  static const OpDef def = make_unary({.name = "reciprocal",
                                       .doc = "y = 1 / x.",
                                       .onnx = "Reciprocal",
                                       .types = dtypes::kFloat,
                                       .scalar = same_type_loop<Reciprocal, 1, FloatTypes>,
                                       .sample = sample_unary_of<DType::f32, 1, 4>});
  return def;
}

const OpDef& erf_def() {
  static const OpDef def = make_unary({.name = "erf",
                                       .doc = "y = 2 / sqrt(pi) * integral of exp(-t^2) from 0 to x.",
                                       .onnx = "Erf",
                                       .since = 9,
                                       .types = dtypes::kNumeric,
                                       .scalar = same_type_loop<Erf, 1, NumericTypes>});
  return def;
}

}  // namespace autograph
