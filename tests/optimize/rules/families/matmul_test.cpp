// Cases for the rules about matrix products.
#include "optimize/rules/rule_cases.h"

namespace autograph {
namespace {

[[maybe_unused]] const bool kAdded = add_rule_cases({
    {"matmul.seven_products", "x:4,6; $w:6,2", "y = matmul(x, w)"},
    {"matmul.seven_products", "x:3,2,4; $w:4,6", "y = matmul(x, w); z = relu(y)"},
    {"matmul.seven_products", "x:3,4; $w:4,6", "y = matmul(x, w)", false},
    {"matmul.seven_products", "x:4,3; $w:3,6", "y = matmul(x, w)", false},
    {"matmul.seven_products", "x:2,4,4; $w:2,4,4", "y = matmul(x, w)", false},
    {"matmul.seven_products", "x:4; $w:4,4", "y = matmul(x, w)", false},
    {"matmul.regroup_right", "a:2,3; b:3,4; c:4,2", "s = matmul(a, b); t = matmul(s, c)"},
    {"matmul.regroup_right", "a:5,2,3; b:3,4; c:5,4,2", "s = matmul(a, b); t = matmul(s, c)"},
    {"matmul.regroup_right", "a:3; b:5,3,4; c:4,2", "s = matmul(a, b); t = matmul(s, c)", false},
    {"matmul.regroup_left", "a:2,3; b:3,4; c:4,2", "s = matmul(b, c); t = matmul(a, s)"},
    {"matmul.regroup_left", "a:2,3; b:3,4; c:4", "s = matmul(b, c); t = matmul(a, s)", false},
    {"matmul.factor_right", "a:2,3; b:2,3; c:3,4", "s = matmul(a, c); t = matmul(b, c); v = add(s, t)"},
    {"matmul.factor_right", "a:2,3; b:1,3; c:3,4", "s = matmul(a, c); t = matmul(b, c); v = add(s, t)", false},
    {"matmul.factor_left", "a:3,4; b:3,4; c:2,3", "s = matmul(c, a); t = matmul(c, b); v = add(s, t)"},
    {"matmul.factor_left", "a:3,4; b:3,1; c:2,3", "s = matmul(c, a); t = matmul(c, b); v = add(s, t)", false},
    {"matmul.factor_right_difference", "a:2,3; b:2,3; c:3,4", "s = matmul(a, c); t = matmul(b, c); v = sub(s, t)"},
    {"matmul.factor_right_difference", "a:3; b:3; c:3,4", "s = matmul(a, c); t = matmul(b, c); v = sub(s, t)", false},
    {"matmul.factor_left_difference", "a:3,4; b:3,4; c:2,3", "s = matmul(c, a); t = matmul(c, b); v = sub(s, t)"},
    {"matmul.factor_left_difference", "a:3; b:3; c:2,3", "s = matmul(c, a); t = matmul(c, b); v = sub(s, t)", false},
    {"matmul.distribute_right", "a:2,3; b:2,3; c:3,4", "s = add(a, b); v = matmul(s, c)"},
    {"matmul.distribute_right", "a:2,3; b:3; c:3,4", "s = add(a, b); v = matmul(s, c)", false},
    {"matmul.distribute_left", "a:3,4; b:3,4; c:2,3", "s = add(a, b); v = matmul(c, s)"},
    {"matmul.distribute_left", "a:3,4; b:4; c:2,3", "s = add(a, b); v = matmul(c, s)", false},
    {"matmul.factor_chain", "a:2,3; b:3,4; c:4,4", "s = matmul(a, b); t = matmul(s, c); v = add(s, t)"},
    {"matmul.factor_chain", "a:2,3; b:3,4; c:4,1", "s = matmul(a, b); t = matmul(s, c); v = add(s, t)", false},
    {"matmul.join_pair_sum", "a:2,3; b:3,4; c:2,5; d:5,4", "s = matmul(a, b); t = matmul(c, d); v = add(t, s)"},
    {"matmul.join_pair_sum", "a:2,3; b:3,4; c:1,5; d:5,4", "s = matmul(a, b); t = matmul(c, d); v = add(s, t)", false},
    {"matmul.merge_columns", "x:2,3; $u:3,4; $v:3,2; $w:3,1", "a = matmul(x, u); b = matmul(x, v); c = matmul(x, w)"},
    {"matmul.merge_columns", "x:3; $u:3,4; $v:3,2", "a = matmul(x, u); b = matmul(x, v)"},
    {"matmul.merge_columns", "x:2,2,3; $u:2,3,4; $v:2,3,4", "a = matmul(x, u); b = matmul(x, v)", false},
    {"matmul.merge_columns_of_values", "x:2,2,3; u:2,3,4; $v:2,3,1", "a = matmul(x, u); b = matmul(x, v)"},
    {"matmul.merge_columns_of_values", "x:2,2,3; u:2,3,4; v:3,1", "a = matmul(x, u); b = matmul(x, v)", false},
    {"matmul.merge_rows", "x:1,2,3; y:1,1,3; z:1,4,3; $w:3,4", "a = matmul(x, w); b = matmul(y, w); c = matmul(z, w)"},
    {"matmul.merge_rows", "x:1,2,3; y:5,2,3; $w:3,4", "a = matmul(x, w); b = matmul(y, w)"},
    {"matmul.merge_rows", "x:1,2,3; y:5,1,3; $w:3,4", "a = matmul(x, w); b = matmul(y, w)", false},
    // The second product needs the first.
    {"matmul.merge_rows", "x:2,3; $w:3,3", "a = matmul(x, w); y = tanh(a); b = matmul(y, w)", false},
    // The first two are apart, the third needs the second.
    {"matmul.merge_rows", "x:2,3; y:2,3; $w:3,3", "a = matmul(x, w); b = matmul(y, w); z = tanh(b); c = matmul(z, w)"},
    {"matmul.merge_gemm", "x:2,3; $v:4,3; $w:2,3; $b:4; $c:2",
     "s = gemm[transB=1](x, v, b); t = gemm[transB=1](x, w, c)"},
    {"matmul.merge_gemm", "x:3,2; $v:3,4; $w:3,2; $b:4; $c:2",
     "s = gemm[transA=1](x, v, b); t = gemm[transA=1](x, w, c)"},
    {"matmul.merge_gemm", "x:2,3; $v:3,4; $w:3,2; $b:1; $c:2", "s = gemm(x, v, b); t = gemm(x, w, c)", false},
    {"matmul.merge_gemm", "x:2,3; $v:3,4; $w:3,2; $b:4; $c:2", "s = gemm(x, v, b); t = gemm[alpha=0.5](x, w, c)",
     false},
    {"matmul.scale_weight", "x:2,3; $c:3; $w:3,4", "a = mul(x, c); m = matmul(a, w)"},
    {"matmul.scale_weight", "x:5,2,3; $c:1,1; $w:3,4", "a = mul(x, c); m = matmul(a, w)"},
    {"matmul.scale_weight", "x:2,3; $c:2,1; $w:3,4", "a = mul(x, c); m = matmul(a, w)", false},
    {"matmul.scale_weight", "x:2,1; $c:3; $w:3,4", "a = mul(x, c); m = matmul(a, w)", false},
    {"matmul.scale_result", "x:2,3; $c:1; y:3,4", "a = mul(x, c); m = matmul(a, y)"},
    {"matmul.scale_result", "x:2,3; $c:3; y:3,4", "a = mul(x, c); m = matmul(a, y)", false},
    {"matmul.scale_operand", "x:2,3; $c:1; y:3,4", "p = matmul(x, y); m = mul(p, c)"},
    {"matmul.scale_operand", "x:2,3; $c:1,1,1; y:3,4", "p = matmul(x, y); m = mul(p, c)", false},
    {"matmul.shift_result", "x:2,3; $b:3; $w:3,4", "a = add(x, b); m = matmul(a, w)"},
    {"matmul.shift_result", "x:2,3; $b:2,3; $w:3,4", "a = add(x, b); m = matmul(a, w)", false},
});

}  // namespace
}  // namespace autograph
