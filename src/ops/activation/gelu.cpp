// gelu: y = x * P(N(0, 1) <= x), exactly (approximate = none: 0.5 x (1 + erf(x / sqrt 2))) or with
// approximate = tanh: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formula_vjp.h"
#include "ops/elementwise/formula/formulas.h"
#include "ops/elementwise/formula/make_elementwise.h"
#include "ops/elementwise/formula/scalar_loops.h"

namespace autograph {
namespace {

// The formula that the attribute asks for.
class Gelu {
 public:
  explicit Gelu(const Attributes& attributes) : use_tanh_(attributes.text("approximate") == "tanh") {}
  template <class T>
  T operator()(T x) const {
    return use_tanh_ ? formulas::GeluTanh::of(x) : formulas::Gelu::of(x);
  }

 private:
  bool use_tanh_;
};

OpSample sample(Random& random) {
  OpSample call = sample_unary(random);
  call.attributes = {{"approximate", std::string(draw_bool(random) ? "tanh" : "none")}};
  return call;
}

// With u = sqrt(2 / pi) (x + 0.044715 x^3), 1 + tanh(u) is 2 sigmoid(2u) and 1 - tanh(u)^2 is 4 sigmoid(2u)
// sigmoid(-2u), which does not cancel: x^3 would make much of what is left. Beyond 32 the slope is 0 or 1 in every
// dtype, and x^3 need not overflow.
void vjp(VjpContext& c) {
  if (c.attributes().text("approximate") != "tanh") return formula_vjp(c);
  constexpr double kTwice = 2 * 0.79788456080286535588;  // 2 sqrt(2 / pi)
  const Var x = clip(c.in(0), scalar_like(c.in(0), -32), scalar_like(c.in(0), 32));
  const Var square = x * x;
  const Var bent = kTwice * x * (1 + 0.044715 * square);
  const Var inner = kTwice * x * (1 + 3 * 0.044715 * square);
  c.set(0, c.gy(0) * (sigmoid(bent) * (1 + inner * sigmoid(-bent))));
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
                                       .vjp = vjp,
                                       .sample = sample});
  return def;
}

}  // namespace autograph
