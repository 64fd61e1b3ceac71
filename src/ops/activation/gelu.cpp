// gelu: y = x * P(N(0, 1) <= x), exactly (approximate = none: 0.5 x (1 + erf(x / sqrt 2))) or with
// approximate = tanh: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
#include <cmath>
#include <numbers>

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "ops/defs.h"
#include "ops/elementwise/make_elementwise.h"
#include "ops/elementwise/scalar_loops.h"

namespace autograph {
namespace {

struct Gelu {
  explicit Gelu(const Attributes& attributes) : use_tanh(attributes.text("approximate") == "tanh") {}
  template <class T>
  T operator()(T x) const {
    // Far below 0 nothing would be left of 1 + erf and of 1 + tanh.
    if (!use_tanh) return x / 2 * std::erfc(x * (std::numbers::sqrt2_v<T> / -2));
    constexpr T kTwiceSqrtTwoOverPi = 2 * std::numbers::sqrt2_v<T> * std::numbers::inv_sqrtpi_v<T>;
    return x / (1 + std::exp(-kTwiceSqrtTwoOverPi * (x + T(0.044715) * x * x * x)));
  }

  bool use_tanh;
};

OpSample sample(Random& random) {
  OpSample call = sample_unary(random);
  call.attributes = {{"approximate", std::string(draw_bool(random) ? "tanh" : "none")}};
  return call;
}

}  // namespace

Var gelu(Var x, bool approximate) {
  return apply(gelu_def(), {x}, {{"approximate", std::string(approximate ? "tanh" : "none")}});
}

const OpDef& gelu_def() {
  static const OpDef def = make_unary({.name = "gelu",
                                       .doc = "y = x / 2 * (1 + erf(x / sqrt(2))), or its tanh approximation.",
                                       .onnx = "Gelu",
                                       .since = 20,
                                       .types = dtypes::kFloat,
                                       .scalar = same_type_loop<Gelu, 1, FloatTypes>,
                                       .attributes = {{.name = "approximate",
                                                       .type = AttributeType::text,
                                                       .doc = "none: the exact formula; tanh: the approximation.",
                                                       .default_value = std::string("none"),
                                                       .allowed = {"none", "tanh"}}},
                                       .sample = sample});
  return def;
}

}  // namespace autograph
