// gelu: y = x * P(N(0, 1) <= x), exactly (approximate = none: 0.5 x (1 + erf(x / sqrt 2))) or with
// approximate = tanh: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "ops/defs.h"
#include "ops/elementwise/formulas.h"
#include "ops/elementwise/make_elementwise.h"
#include "ops/elementwise/scalar_loops.h"

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
