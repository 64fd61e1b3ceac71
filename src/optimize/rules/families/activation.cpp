// Rules of the pass fuse_activations: activation functions that a model spells out in arithmetic become one node. Each
// is the definition of the op in the forms that exporters write. The ops are arranged so that they do not overflow;
// where the spelled-out form does (x / (1 + exp(-x)) at -100 in f16), they give the limit instead.
#include "optimize/rules/families/families.h"

namespace autograph {
namespace {

Rule activation(std::string_view name, std::string_view formula, std::string_view op, std::string_view guard_doc = "",
                bool (*guard)(const RuleMatch&) = nullptr) {
  return {.name = name,
          .before = formula,
          .after = op,
          .kind = RuleClass::always_pays,
          .guard_doc = guard_doc,
          .guard = guard,
          .is_rounded = true};
}

bool has_height(const RuleMatch& match) { return match.number("h") > 0; }

// clip(x, 0, h) by itself is no hard_sigmoid.
bool changes_argument(const RuleMatch& match) {
  return has_height(match) && (match.number("a") != 1 || match.number("b") != 0);
}

// The larger formula first: mish before the softplus inside it.
const Rule kRules[] = {
    activation("activation.gelu", "y = {0.5 * x * (1 + erf(0.70710678118654752 * x))}",
               "y = gelu[approximate=\"none\"](x)"),
    activation("activation.gelu_by_tanh", "y = {0.5 * x * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x^3)))}",
               "y = gelu[approximate=\"tanh\"](x)"),
    activation("activation.gelu_by_sigmoid", "y = {x * sigmoid(1.59576912160573073 * (x + 0.044715 * x^3))}",
               "y = gelu[approximate=\"tanh\"](x)"),
    activation("activation.swish", "y = {x * sigmoid(#a * x)}", "y = swish[alpha={#a}](x)"),
    activation("activation.swish_as_quotient", "y = {x / (1 + exp(-#a * x))}", "y = swish[alpha={#a}](x)"),
    activation("activation.hard_swish", "y = {x * clip(#h * x / 6 + #h / 2, 0, #h) / #h}", "y = hard_swish(x)", "h > 0",
               has_height),
    activation("activation.hard_swish_by_gate", "y = {x * hard_sigmoid[alpha=0.16666666666666667, beta=0.5](x)}",
               "y = hard_swish(x)"),
    activation("activation.mish", "y = {x * tanh(log(1 + exp(x)))}", "y = mish(x)"),
    activation("activation.mish_by_softplus", "y = {x * tanh(softplus(x))}", "y = mish(x)"),
    activation("activation.softplus", "y = {log(1 + exp(x))}", "y = softplus(x)"),
    activation("activation.hard_sigmoid", "y = {clip(#a * x + #b, 0, #h) / #h}",
               "y = hard_sigmoid[alpha={#a / #h}, beta={#b / #h}](x)", "h > 0, and not clip(x, 0, h) alone",
               changes_argument),
};

}  // namespace

std::span<const Rule> activation_rules() { return kRules; }

}  // namespace autograph
