// Smooth activation functions without attributes: sigmoid, tanh, softplus, softsign, mish; and hard_swish. All are
// arranged so that no intermediate overflows. NaN propagates.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "ops/defs.h"
#include "ops/elementwise/make_elementwise.h"
#include "ops/elementwise/scalar_loops.h"

namespace autograph {
namespace {

struct Sigmoid {
  explicit Sigmoid(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    // exp of a negative number only, so that it cannot overflow
    const T e = std::exp(-std::fabs(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
  }
};

struct Tanh {
  explicit Tanh(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return std::tanh(x);
  }
};

struct Softplus {
  explicit Softplus(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    // log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)
    return (x < 0 ? T(0) : x) + std::log1p(std::exp(-std::fabs(x)));
  }
};

struct Softsign {
  explicit Softsign(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return x / (1 + std::fabs(x));
  }
};

struct Mish {
  explicit Mish(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    const T softplus = (x < 0 ? T(0) : x) + std::log1p(std::exp(-std::fabs(x)));
    return x * std::tanh(softplus);
  }
};

struct HardSwish {
  explicit HardSwish(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    const T gate = x / 6 + T(0.5);
    return x * (gate < 0 ? T(0) : gate > 1 ? T(1) : gate);
  }
};

}  // namespace

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
                                       .scalar = same_type_loop<Sigmoid, 1, FloatTypes>});
  return def;
}

const OpDef& tanh_def() {
  static const OpDef def = make_unary({.name = "tanh",
                                       .doc = "y = hyperbolic tangent of x.",
                                       .onnx = "Tanh",
                                       .types = dtypes::kFloat,
                                       .scalar = same_type_loop<Tanh, 1, FloatTypes>});
  return def;
}

const OpDef& softplus_def() {
  static const OpDef def = make_unary({.name = "softplus",
                                       .doc = "y = log(1 + exp(x)).",
                                       .onnx = "Softplus",
                                       .types = dtypes::kFloat,
                                       .scalar = same_type_loop<Softplus, 1, FloatTypes>});
  return def;
}

const OpDef& softsign_def() {
  static const OpDef def = make_unary({.name = "softsign",
                                       .doc = "y = x / (1 + |x|).",
                                       .onnx = "Softsign",
                                       .types = dtypes::kFloat,
                                       .scalar = same_type_loop<Softsign, 1, FloatTypes>});
  return def;
}

const OpDef& mish_def() {
  static const OpDef def = make_unary({.name = "mish",
                                       .doc = "y = x * tanh(softplus(x)).",
                                       .onnx = "Mish",
                                       .since = 18,
                                       .types = dtypes::kFloat,
                                       .scalar = same_type_loop<Mish, 1, FloatTypes>});
  return def;
}

const OpDef& hard_swish_def() {
  static const OpDef def = make_unary({.name = "hard_swish",
                                       .doc = "y = x * max(0, min(1, x / 6 + 1 / 2)).",
                                       .onnx = "HardSwish",
                                       .since = 14,
                                       .types = dtypes::kFloat,
                                       .scalar = same_type_loop<HardSwish, 1, FloatTypes>});
  return def;
}

}  // namespace autograph
