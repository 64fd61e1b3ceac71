// Cases for the rules about sums of products and products side by side.
#include "optimize/rules/rule_cases.h"

namespace autograph {
namespace {

[[maybe_unused]] const bool kAdded = add_rule_cases({
    {"matmul.join_sum", "x:2,3; y:2,5; $v:3,4; $w:5,4", "s = matmul(x, v); t = matmul(y, w); z = sum(s, t)"},
    // A mixture of experts: a factor for each row, the pieces of what the router gives.
    {"matmul.join_sum", "x:1,2,3; y:1,2,3; r:1,2,2; $c:={1,1}; $v:3,4; $w:3,4",
     "p, q = split[axis=2](r, c); s = matmul(x, v); a = mul(s, p); t = matmul(y, w); b = mul(q, t); z = sum(a, b)"},
    // Factors that are there for some, and of other ranks.
    {"matmul.join_sum", "x:2,3; y:2,3; u:2,3; p:2,1; q:1; $v:3,4; $w:3,4; $a:3,4",
     "s = matmul(x, v); d = mul(s, p); t = matmul(y, w); b = mul(t, q); r = matmul(u, a); z = sum(d, b, r)"},
    // Other terms stay.
    {"matmul.join_sum", "x:2,3; y:2,5; u:4; $v:3,4; $w:5,4", "s = matmul(x, v); t = matmul(y, w); z = sum(s, u, t)"},
    {"matmul.join_sum", "x:2,3; y:2,5; u:2,4; r:2,4; $v:3,4; $w:5,4",
     "s = matmul(x, v); t = matmul(y, w); a = tanh(u); b = mul(a, r); z = sum(s, b, u, t)"},
    {"matmul.join_sum", "x:2,3; y:2,5; $v:3,4; $w:5,4", "s = matmul(x, v); t = matmul(y, w); z = sum(s, t)", false,
     "s"},
    {"matmul.join_sum", "x:2,3; y:2,5; u:1,4; $v:3,4; $w:5,4", "s = matmul(x, v); z = sum(s, u)", false},
    {"matmul.join_sum", "x:2,3; y:1,5; $v:3,4; $w:5,4", "s = matmul(x, v); t = matmul(y, w); z = sum(s, t)", false},
    {"matmul.join_sum", "x:2,3; y:2,5; $v:3,4; $w:5,1", "s = matmul(x, v); t = matmul(y, w); z = sum(s, t)", false},
    {"matmul.join_sum", "x:2,3; y:2,5; r:4; $v:3,4; $w:5,4",
     "s = matmul(x, v); a = mul(s, r); t = matmul(y, w); z = sum(a, t)", false},

    {"matmul.scale_rows", "x:2,3; r:2,1; $w:3,4", "m = matmul(x, w); y = mul(r, m)"},
    {"matmul.scale_rows", "x:5,2,3; r:5,1,1; $w:3,4", "m = matmul(x, w); y = mul(m, r)"},
    {"matmul.scale_rows", "x:2,3; r:4; $w:3,4", "m = matmul(x, w); y = mul(m, r)", false},
    {"matmul.scale_rows", "x:1,3; r:2,1; $w:3,4", "m = matmul(x, w); y = mul(m, r)", false},
    {"matmul.scale_rows", "x:2,3; r:1,1,1; $w:3,4", "m = matmul(x, w); y = mul(m, r)", false},
    {"matmul.scale_rows", "x:3; r:1; $w:3,4", "m = matmul(x, w); y = mul(m, r)", false},

    {"matmul.join_columns", "x:2,3; $v:3,4; $w:3,1", "s = matmul(x, v); t = matmul(x, w); c = concat[axis=1](s, t)"},
    {"matmul.join_columns", "x:2,2,3; $v:3,4; $w:3,1; $u:3,2",
     "r = matmul(x, u); s = matmul(x, v); t = matmul(x, w); c = concat[axis=-1](s, t, r)"},
    {"matmul.join_columns", "x:2,3; $v:3,4; $w:3,4", "s = matmul(x, v); t = matmul(x, w); c = concat[axis=0](s, t)",
     false},
    {"matmul.join_columns", "x:2,3; y:2,3; $v:3,4; $w:3,4",
     "s = matmul(x, v); t = matmul(y, w); c = concat[axis=1](s, t)", false},
    {"matmul.join_columns", "x:2,3; $v:3,4; $w:3,1", "s = matmul(x, v); t = matmul(x, w); c = concat[axis=1](s, t)",
     false, "t"},
});

}  // namespace
}  // namespace autograph
