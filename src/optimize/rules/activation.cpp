// Rules of the pass fuse_activations: activation functions that a model spells out in arithmetic become one node. Each
// is the definition of the op in the forms that exporters write. The ops are arranged so that they do not overflow;
// where the spelled-out form does (x / (1 + exp(-x)) at -100 in f16), they give the limit instead.
#include <cmath>

#include "optimize/rules/families.h"

namespace autograph {
namespace {

using enum RuleClass;

// clip(x, 0, h) by itself is none.
bool changes_argument(const RuleMatch& match) { return match.number("a") != 1 || match.number("b") != 0; }

// The largest formula first: hard_swish before the hard_sigmoid inside it.
const Rule kRules[] = {
    // x/2 (1 + erf(x / sqrt 2))
    {.name = "activation.gelu",
     .before = "y = {0.5 * x * (1 + erf(0.70710678118654752 * x))}",
     .after = "y = gelu[approximate=\"none\"](x)",
     .outputs = {"y"},
     .kind = fuses,
     .any_extents = true,
     .is_rounded = true},
    // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
    {.name = "activation.gelu_by_tanh",
     .before = "y = {0.5 * x * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x^3)))}",
     .after = "y = gelu[approximate=\"tanh\"](x)",
     .outputs = {"y"},
     .kind = fuses,
     .any_extents = true,
     .is_rounded = true},
    // x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3))
    {.name = "activation.gelu_by_sigmoid",
     .before = "y = {x * sigmoid(1.59576912160573073 * (x + 0.044715 * x^3))}",
     .after = "y = gelu[approximate=\"tanh\"](x)",
     .outputs = {"y"},
     .kind = fuses,
     .any_extents = true,
     .is_rounded = true},
    // x sigmoid(a x)
    {.name = "activation.swish",
     .before = "y = {x * sigmoid(#a * x)}",
     .after = "y = swish[alpha={#a}](x)",
     .outputs = {"y"},
     .kind = fuses,
     .any_extents = true,
     .is_rounded = true},
    // x / (1 + exp(-a x))
    {.name = "activation.swish_as_quotient",
     .before = "y = {x / (1 + exp(-#a * x))}",
     .after = "y = swish[alpha={#a}](x)",
     .outputs = {"y"},
     .kind = fuses,
     .any_extents = true,
     .is_rounded = true},
    // x clip(x + 3, 0, 6) / 6; x clip(x/6 + 1/2, 0, 1)
    {.name = "activation.hard_swish",
     .before = "y = {x * clip(#h * x / 6 + #h / 2, 0, #h) / #h}",
     .after = "y = hard_swish(x)",
     .outputs = {"y"},
     .kind = fuses,
     .guard_doc = "h > 0",
     .guard = [](const RuleMatch& match) { return match.number("h") > 0; },
     .any_extents = true,
     .is_rounded = true},
    // x hard_sigmoid(x; 1/6, 1/2)
    {.name = "activation.hard_swish_by_gate",
     .before = "y = {x * hard_sigmoid[alpha=0.16666666666666667, beta=0.5](x)}",
     .after = "y = hard_swish(x)",
     .outputs = {"y"},
     .kind = fuses,
     .any_extents = true,
     .is_rounded = true},
    // x tanh(log(1 + exp(x)))
    {.name = "activation.mish",
     .before = "y = {x * tanh(log(1 + exp(x)))}",
     .after = "y = mish(x)",
     .outputs = {"y"},
     .kind = fuses,
     .any_extents = true,
     .is_rounded = true},
    // x tanh(softplus(x))
    {.name = "activation.mish_by_softplus",
     .before = "y = {x * tanh(softplus(x))}",
     .after = "y = mish(x)",
     .outputs = {"y"},
     .kind = fuses,
     .any_extents = true,
     .is_rounded = true},
    // log(1 + exp(x))
    {.name = "activation.softplus",
     .before = "y = {log(1 + exp(x))}",
     .after = "y = softplus(x)",
     .outputs = {"y"},
     .kind = fuses,
     .any_extents = true,
     .is_rounded = true},
    // clip(a x + b, 0, h) / h
    {.name = "activation.hard_sigmoid",
     .before = "y = {clip(#a * x + #b, 0, #h) / #h}",
     .after = "y = hard_sigmoid[alpha={#a / #h}, beta={#b / #h}](x)",
     .outputs = {"y"},
     .kind = fuses,
     .guard_doc = "h > 0, and not clip(x, 0, h) alone",
     .guard = [](const RuleMatch& match) { return match.number("h") > 0 && changes_argument(match); },
     .any_extents = true,
     .is_rounded = true},
};

}  // namespace

std::span<const Rule> activation_rules() { return kRules; }

}  // namespace autograph
