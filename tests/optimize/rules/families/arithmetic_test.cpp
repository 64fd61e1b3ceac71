// Cases for the rules about sums and products, broadcasting included.
#include "optimize/rules/rule_cases.h"

namespace autograph {
namespace {

[[maybe_unused]] const bool kAdded = add_rule_cases({
    {"arithmetic.regroup_add", "x:2,3; y:3; z:2,1", "s = add(x, y); t = add(s, z)"},
    {"arithmetic.regroup_add", "x:2,3; y:3; z:2,1", "s = add(x, y); t = add(s, z)", false, "s"},
    {"arithmetic.regroup_mul", "x:2,3; y:3; z:2,1", "s = mul(x, y); t = mul(s, z)"},
    {"arithmetic.exchange_add", "x:2,3; y:3; z:2,1; u:1", "s = add(x, y); t = add(z, u); v = add(s, t)"},
    {"arithmetic.exchange_mul", "x:2,3; y:3; z:2,1; u:1", "s = mul(x, y); t = mul(z, u); v = mul(s, t)"},
    {"arithmetic.join_addends", "x:2,3; $c:3; $d:2,1", "s = add(x, c); t = add(d, s)"},
    {"arithmetic.join_addends", "x:2,3; y:3; $d:2,1", "s = add(x, y); t = add(s, d)", false},
    {"arithmetic.join_factors", "x:2,3; $c:3; $d:2,1", "s = mul(c, x); t = mul(s, d)"},
    {"arithmetic.collect_addends", "x:2,3; y:2,3; $c:3; $d:2,1", "s = add(x, c); t = add(y, d); v = add(s, t)"},
    {"arithmetic.collect_factors", "x:2,3; y:2,3; $c:3; $d:2,1", "s = mul(x, c); t = mul(y, d); v = mul(s, t)"},
    {"arithmetic.join_affine", "x:2,3; $c:3; $b:2,1; $d:1", "s = mul(x, c); t = add(s, b); v = mul(t, d)"},
    {"arithmetic.factor_before_addend", "x:2,3; $b:3; $c:2,1", "s = add(x, b); t = mul(s, c)"},
    {"arithmetic.add_negative", "x:2,3; $c:3", "y = sub(x, c)"},
    {"arithmetic.add_negative", "x:2,3; $c:3", "y = sub(c, x)", false},
    {"arithmetic.multiply_by_reciprocal", "x:2,3; $c:3", "y = div(x, c)"},
    {"arithmetic.multiply_by_reciprocal", "x:2,3; $c:3", "y = div(c, x)", false},
    {"arithmetic.factor_sum", "c:3; x:2,3; y:2,1", "s = mul(c, x); t = mul(y, c); v = add(s, t)"},
    {"arithmetic.factor_sum", "c:3; d:3; x:2,3; y:2,1", "s = mul(c, x); t = mul(y, d); v = add(s, t)", false},
    {"arithmetic.distribute_sum", "c:3; x:2,3; y:2,1", "s = add(x, y); v = mul(s, c)"},
    {"arithmetic.factor_difference", "c:3; x:2,3; y:2,1", "s = mul(c, x); t = mul(y, c); v = sub(s, t)"},
    {"arithmetic.distribute_difference", "c:3; x:2,3; y:2,1", "s = sub(x, y); v = mul(s, c)"},
    {"arithmetic.factor_quotients", "$c:3; x:2,3; y:2,1", "s = div(x, c); t = div(y, c); v = add(s, t)"},
    {"arithmetic.factor_quotient_difference", "$c:3; x:2,3; y:2,1", "s = div(x, c); t = div(y, c); v = sub(s, t)"},
    {"arithmetic.factor_one", "$c:3; x:2,3", "s = mul(c, x); v = add(x, s)"},
    {"arithmetic.factor_sum_apart", "c:3; x:2,3; y:2,1; z:2,3",
     "s = mul(c, x); t = mul(c, y); u = add(t, z); v = add(s, u)"},
    {"arithmetic.double", "x:2,3", "y = add(x, x)"},
    {"arithmetic.double", "x:2,3; z:2,3", "y = add(x, z)", false},
    {"arithmetic.divide_last", "x:2,3; $c:3; y:2,1", "s = div(x, c); t = mul(s, y)"},
    {"arithmetic.divide_first", "x:2,3; $c:3; y:2,1", "s = mul(x, y); t = div(s, c)"},
    {"arithmetic.join_divisors", "x:2,3; $c:3; $d:2,1", "s = div(x, c); t = div(s, d)"},
    {"arithmetic.join_divisors", "x:2,3; $c:3; $d:2,1", "s = div(x, c); t = div(d, s)", false},
    {"arithmetic.subtract", "x:2,3; y:3", "n = neg(y); s = add(n, x)"},
    {"arithmetic.subtract_negative", "x:2,3; y:3", "n = neg(y); s = sub(x, n)"},
    {"arithmetic.negate_difference", "x:2,3; y:3", "d = sub(x, y); n = neg(d)"},
    {"arithmetic.cancel_signs", "x:2,3; y:3", "m = neg(x); n = neg(y); p = mul(m, n)"},
    {"arithmetic.negate_last", "x:2,3; y:3", "n = neg(x); p = mul(y, n)"},
    {"arithmetic.negate_quotient", "x:2,3; $y:3", "n = neg(x); q = div(n, y)"},
    {"arithmetic.join_abs", "x:2,3; y:3", "a = abs(x); b = abs(y); p = mul(a, b)"},
    {"arithmetic.join_exp", "x:2,3; y:3", "a = exp(x); b = exp(y); p = mul(a, b)"},
    {"arithmetic.relu_of_max", "x:2,3; y:3", "a = relu(x); b = relu(y); m = max(a, b)"},
});

}  // namespace
}  // namespace autograph
