// Cases for the rules of squeeze-and-excite blocks.
#include "optimize/rules/rule_cases.h"

namespace autograph {
namespace {

constexpr std::string_view kBlock = "x:2,4,3,3; $v:2,4,1,1; $b:2; $w:4,2,1,1; $d:4";

[[maybe_unused]] const bool kAdded = add_rule_cases({
    {"squeeze_excite.gate", kBlock,
     "p = global_average_pool(x); a = conv(p, v, b); s = relu(a); c = conv(s, w, d); y = sigmoid(c); z = mul(y, x)"},
    {"squeeze_excite.gate", kBlock,
     "p = global_average_pool(x); a = conv(p, v); s = swish(a); c = conv(s, w); y = hard_sigmoid(c)"},
    // Read elsewhere; one convolution; a function that reads something else.
    {"squeeze_excite.gate", kBlock,
     "p = global_average_pool(x); a = conv(p, v, b); s = relu(a); c = conv(s, w, d); y = sigmoid(c)", false, "s"},
    {"squeeze_excite.gate", kBlock, "p = global_average_pool(x); a = conv(p, v, b); s = relu(a)", false},
    {"squeeze_excite.gate", "x:2,4,3,3; $v:2,4,1,1; $w:4,2,1,1; z:2,2,1,1",
     "p = global_average_pool(x); a = conv(p, v); s = add(a, z); c = conv(s, w); y = sigmoid(c)", false},
    {"squeeze_excite.clipped_gate", kBlock,
     "p = global_average_pool(x); a = conv(p, v, b); s = clip(a, 0, 6); c = conv(s, w, d); y = sigmoid(c)"},
    {"squeeze_excite.clipped_gate", kBlock,
     "p = global_average_pool(x); a = conv(p, v, b); s = clip(a, 0, 6); c = conv(s, w, d); y = sigmoid(c)", false, "c"},
    {"squeeze_excite.plain_gate", kBlock,
     "p = global_average_pool(x); a = conv(p, v, b); s = relu(a); y = conv(s, w, d)"},
    {"squeeze_excite.plain_gate", kBlock,
     "p = global_average_pool(x); a = conv(p, v, b); s = relu(a); y = conv(s, w, d)", false, "p"},
});

}  // namespace
}  // namespace autograph
