// Rules about sums, products, differences and quotients. They hold element by element, so that they hold under
// broadcasting as well. Results differ by rounding, and where a step overflows for what the values are; constants that
// alone could make it so are left as they are (weight_range.h).
#include "optimize/rules/families/families.h"

namespace autograph {
namespace {

using enum RuleClass;

const Rule kRules[] = {
    // ---- Order of sums and products -------------------------------------------------------------------------------
    // (x + y) + z -> x + (y + z)
    {.name = "arithmetic.regroup_add",
     .before = "s = add(x, y); t = add(s, z)",
     .after = "s = add(y, z); t = add(x, s)",
     .kind = canonicalizes},
    // (x y) z -> x (y z)
    {.name = "arithmetic.regroup_mul",
     .before = "s = mul(x, y); t = mul(s, z)",
     .after = "s = mul(y, z); t = mul(x, s)",
     .kind = canonicalizes},
    // (x + y) + (z + u) -> (x + z) + (y + u)
    {.name = "arithmetic.exchange_add",
     .before = "s = add(x, y); t = add(z, u); v = add(s, t)",
     .after = "s = add(x, z); t = add(y, u); v = add(s, t)",
     .kind = canonicalizes},
    // (x y) (z u) -> (x z) (y u)
    {.name = "arithmetic.exchange_mul",
     .before = "s = mul(x, y); t = mul(z, u); v = mul(s, t)",
     .after = "s = mul(x, z); t = mul(y, u); v = mul(s, t)",
     .kind = canonicalizes},

    // ---- Weights meet ---------------------------------------------------------------------------------------------
    // (x + c) + d -> x + (c + d)
    {.name = "arithmetic.join_addends",
     .before = "s = add(x, $c); t = add(s, $d)",
     .after = "s = add($c, $d); t = add(x, s)",
     .kind = shrinks},
    // (x c) d -> x (c d)
    {.name = "arithmetic.join_factors",
     .before = "s = mul(x, $c); t = mul(s, $d)",
     .after = "s = mul($c, $d); t = mul(x, s)",
     .kind = shrinks},
    // (x + c) + (y + d) -> (x + y) + (c + d)
    {.name = "arithmetic.collect_addends",
     .before = "s = add(x, $c); t = add(y, $d); v = add(s, t)",
     .after = "s = add(x, y); t = add($c, $d); v = add(s, t)",
     .kind = shrinks},
    // (x c) (y d) -> (x y) (c d)
    {.name = "arithmetic.collect_factors",
     .before = "s = mul(x, $c); t = mul(y, $d); v = mul(s, t)",
     .after = "s = mul(x, y); t = mul($c, $d); v = mul(s, t)",
     .kind = shrinks},
    // (x c + b) d -> x (c d) + b d
    {.name = "arithmetic.join_affine",
     .before = "s = mul(x, $c); t = add(s, $b); v = mul(t, $d)",
     .after = "e = mul($c, $d); f = mul($b, $d); s = mul(x, e); v = add(s, f)",
     .kind = shrinks},
    // (x + b) c -> x c + b c
    {.name = "arithmetic.factor_before_addend",
     .before = "s = add(x, $b); t = mul(s, $c)",
     .after = "s = mul(x, $c); d = mul($b, $c); t = add(s, d)",
     .kind = canonicalizes},
    // x - c -> x + (-c)
    {.name = "arithmetic.add_negative",
     .before = "y = sub(x, $c)",
     .after = "n = neg($c); y = add(x, n)",
     .kind = canonicalizes},
    // x / c -> x (1 / c)
    {.name = "arithmetic.multiply_by_reciprocal",
     .before = "y = div(x, $c)",
     .after = "r = div(1, $c); y = mul(x, r)",
     .kind = canonicalizes},

    // ---- Factoring ------------------------------------------------------------------------------------------------
    // c x + c y -> c (x + y)
    {.name = "arithmetic.factor_sum",
     .before = "s = mul(c, x); t = mul(c, y); v = add(s, t)",
     .after = "s = add(x, y); v = mul(c, s)",
     .kind = shrinks},
    // c (x + y) -> c x + c y
    {.name = "arithmetic.distribute_sum",
     .before = "s = add(x, y); v = mul(c, s)",
     .after = "s = mul(c, x); t = mul(c, y); v = add(s, t)",
     // c = inf, x > -y > 0: inf becomes inf - inf
     .finite_only = true},
    // c x - c y -> c (x - y)
    {.name = "arithmetic.factor_difference",
     .before = "s = mul(c, x); t = mul(c, y); v = sub(s, t)",
     .after = "s = sub(x, y); v = mul(c, s)",
     .kind = shrinks},
    // c (x - y) -> c x - c y
    {.name = "arithmetic.distribute_difference",
     .before = "s = sub(x, y); v = mul(c, s)",
     .after = "s = mul(c, x); t = mul(c, y); v = sub(s, t)",
     // c = inf, x > y > 0: inf becomes inf - inf
     .finite_only = true},
    // x / c + y / c -> (x + y) / c
    {.name = "arithmetic.factor_quotients",
     .before = "s = div(x, c); t = div(y, c); v = add(s, t)",
     .after = "s = add(x, y); v = div(s, c)",
     .kind = shrinks},
    // x / c - y / c -> (x - y) / c
    {.name = "arithmetic.factor_quotient_difference",
     .before = "s = div(x, c); t = div(y, c); v = sub(s, t)",
     .after = "s = sub(x, y); v = div(s, c)",
     .kind = shrinks},
    // c x + x -> (c + 1) x
    {.name = "arithmetic.factor_one",
     .before = "s = mul(x, $c); v = add(s, x)",
     .after = "d = add($c, 1); v = mul(x, d)",
     .kind = shrinks},
    // c x + (c y + z) -> c (x + y) + z
    {.name = "arithmetic.factor_sum_apart",
     .before = "s = mul(c, x); t = mul(c, y); u = add(t, z); v = add(s, u)",
     .after = "s = add(x, y); t = mul(c, s); v = add(t, z)",
     .kind = shrinks},
    // x + x -> 2 x
    {.name = "arithmetic.double", .before = "y = add(x, x)", .after = "y = mul(x, 2)", .kind = canonicalizes},

    // ---- Quotients ------------------------------------------------------------------------------------------------
    // (x / c) y -> (x y) / c
    {.name = "arithmetic.divide_last",
     .before = "s = div(x, c); t = mul(s, y)",
     .after = "s = mul(x, y); t = div(s, c)",
     .kind = canonicalizes},
    // (x y) / c -> x (y / c)
    {.name = "arithmetic.divide_first",
     .before = "s = mul(x, y); t = div(s, c)",
     .after = "s = div(y, c); t = mul(x, s)",
     .kind = canonicalizes},
    // (x / c) / d -> x / (c d)
    {.name = "arithmetic.join_divisors",
     .before = "s = div(x, c); t = div(s, d)",
     .after = "s = mul(c, d); t = div(x, s)",
     .kind = canonicalizes},

    // ---- Signs ----------------------------------------------------------------------------------------------------
    // x + (-y) -> x - y
    {.name = "arithmetic.subtract", .before = "n = neg(y); s = add(x, n)", .after = "s = sub(x, y)", .kind = shrinks},
    // x - (-y) -> x + y
    {.name = "arithmetic.subtract_negative",
     .before = "n = neg(y); s = sub(x, n)",
     .after = "s = add(x, y)",
     .kind = shrinks},
    // -(x - y) -> y - x
    {.name = "arithmetic.negate_difference",
     .before = "d = sub(x, y); n = neg(d)",
     .after = "n = sub(y, x)",
     .kind = shrinks},
    // (-x) (-y) -> x y
    {.name = "arithmetic.cancel_signs",
     .before = "m = neg(x); n = neg(y); p = mul(m, n)",
     .after = "p = mul(x, y)",
     .kind = shrinks},
    // (-x) y -> -(x y)
    {.name = "arithmetic.negate_last",
     .before = "n = neg(x); p = mul(n, y)",
     .after = "m = mul(x, y); p = neg(m)",
     .kind = canonicalizes},
    // (-x) / y -> -(x / y)
    {.name = "arithmetic.negate_quotient",
     .before = "n = neg(x); q = div(n, y)",
     .after = "d = div(x, y); q = neg(d)",
     .kind = canonicalizes},

    // ---- Functions ------------------------------------------------------------------------------------------------
    // |x| |y| -> |x y|
    {.name = "arithmetic.join_abs",
     .before = "a = abs(x); b = abs(y); p = mul(a, b)",
     .after = "m = mul(x, y); p = abs(m)",
     .kind = shrinks},
    // exp(x) exp(y) -> exp(x + y)
    {.name = "arithmetic.join_exp",
     .before = "a = exp(x); b = exp(y); p = mul(a, b)",
     .after = "s = add(x, y); p = exp(s)",
     .kind = shrinks},
    // max(relu(x), relu(y)) -> relu(max(x, y))
    {.name = "arithmetic.relu_of_max",
     .before = "a = relu(x); b = relu(y); m = max(a, b)",
     .after = "n = max(x, y); m = relu(n)",
     .kind = shrinks},
};

}  // namespace

std::span<const Rule> arithmetic_rules() { return kRules; }

}  // namespace autograph
