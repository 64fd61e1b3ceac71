// Cases for the rules about concat and split.
#include "optimize/rules/rule_cases.h"

namespace autograph {
namespace {

[[maybe_unused]] const bool kAdded = add_rule_cases({
    {"concat.unary_behind", "x:2,3; y:2,1; z:2,2",
     "a = relu(x); b = relu(y); d = relu(z); c = concat[axis=1](a, b, d)"},
    {"concat.unary_behind", "x:2,3; y:2,1",
     "a = leaky_relu[alpha=0.5](x); b = leaky_relu[alpha=0.5](y); c = concat[axis=-1](a, b)"},
    {"concat.unary_behind", "x:2,3; y:2,1",
     "a = leaky_relu[alpha=0.5](x); b = leaky_relu[alpha=0.25](y); c = concat[axis=-1](a, b)", false},
    {"concat.unary_behind", "x:2,3; y:2,1", "a = relu(x); b = relu(y); c = concat[axis=1](a, b)", false, "a"},
    {"concat.unary_behind", "x:2,3; y:2,1", "a = relu(x); b = tanh(y); c = concat[axis=1](a, b)", false},
    {"concat.unary_before", "x:2,3; y:2,1", "c = concat[axis=1](x, y); a = relu(c)"},
    {"concat.unary_before", "x:2,3; y:2,1", "c = concat[axis=1](x); a = relu(c)", false},
    {"concat.pool_behind", "x:1,2,4,4; y:1,3,4,4",
     "a = max_pool[kernel_shape=[2,2], strides=[2,2]](x); b = max_pool[kernel_shape=[2,2], strides=[2,2]](y);"
     " c = concat[axis=1](a, b)"},
    {"concat.pool_behind", "x:1,2,4,4; y:1,2,5,4",
     "a = max_pool[kernel_shape=[2,2], strides=[2,2]](x); b = max_pool[kernel_shape=[2,2], strides=[2,2]](y);"
     " c = concat[axis=1](a, b)",
     false},
    {"concat.pool_behind", "x:1,2,4,4; y:1,2,4,4",
     "a = global_average_pool(x); b = global_average_pool(y); c = concat[axis=2](a, b)", false},
    {"concat.binary_behind", "x:2,3; y:2,1; u:2,3; v:2,1", "a = sub(x, u); b = sub(y, v); c = concat[axis=1](a, b)"},
    {"concat.binary_behind", "x:2,3; y:2,1; u:2,1", "a = sub(u, x); b = sub(u, y); c = concat[axis=1](a, b)"},
    {"concat.binary_behind", "x:2,3; y:2,2; $u:3; $v:2", "a = mul(x, u); b = mul(y, v); c = concat[axis=1](a, b)"},
    {"concat.binary_behind", "x:2,3; y:2,2; $u:3; $v:1", "a = mul(x, u); b = mul(y, v); c = concat[axis=1](a, b)",
     false},
    {"concat.binary_behind", "x:2,3; y:2,3; u:3", "a = mul(x, u); b = mul(y, u); c = concat[axis=1](a, b)", false},
    {"concat.flatten", "x:2,3; y:2,1; z:2,2", "a = concat[axis=1](x, y); c = concat[axis=-1](z, a, z)"},
    {"concat.flatten", "x:2,3; y:2,1; z:4,4", "a = concat[axis=1](x, y); c = concat[axis=0](z, a)", false},
    {"concat.of_split", "x:2,5; $s:={2,3}", "a, b = split[axis=1](x, s); c = concat[axis=1](a, b)"},
    {"concat.of_split", "x:2,5; $s:={2,3}", "a, b = split[axis=1](x, s); c = concat[axis=1](b, a)", false},
    {"split.of_concat", "x:2,3; y:2,1; z:2,2; $s:={3,3}", "a = concat[axis=1](x, y, z); p, q = split[axis=1](a, s)"},
    {"split.of_concat", "x:2,3; y:2,1; z:2,2; $s:={2,4}", "a = concat[axis=1](x, y, z); p, q = split[axis=1](a, s)",
     false},
    {"split.of_concat", "x:2,3; y:2,1; z:2,2; $s:={1,1}", "a = concat[axis=1](x, y, z); p, q = split[axis=0](a, s)",
     false},
    {"split.flatten", "x:2,6; $s:={2,4}; $t:={3,1}", "a, b = split[axis=1](x, s); p, q = split[axis=1](b, t)"},
    {"split.flatten", "x:2,6; $s:={2,4}; $t:={3,1}", "a, b = split[axis=1](x, s); p, q = split[axis=1](b, t)", false,
     "b"},
    {"split.unary_before", "x:2,6; $s:={2,4}", "a, b = split[axis=1](x, s); p = tanh(a); q = tanh(b)"},
    {"split.unary_before", "x:2,6; $s:={2,4}", "a, b = split[axis=1](x, s); p = tanh(a); q = relu(b)", false},
    {"split.unary_before", "x:2,6; $s:={2,4}", "a, b = split[axis=1](x, s); p = tanh(a)", false},
    {"split.binary_before", "x:2,6; $s:={2,4}; $u:2; $v:4", "a, b = split[axis=1](x, s); p = sub(u, a); q = sub(v, b)"},
    {"split.binary_before", "x:2,6; $s:={2,4}; $u:1", "a, b = split[axis=1](x, s); p = mul(a, u); q = mul(b, u)"},
    {"split.binary_before", "x:2,6; $s:={2,4}; $u:2; $v:4", "a, b = split[axis=1](x, s); p = sub(u, a); q = sub(b, v)",
     false},
    {"split.binary_before", "x:2,6; $s:={3,3}", "a, b = split[axis=1](x, s); p = sub(a, b)", false},
    {"split.binary_before", "x:2,6; $s:={3,3}; $u:2,2,3; $v:2,2,3",
     "a, b = split[axis=1](x, s); p = add(a, u); q = add(b, v)", false},
    {"split.pairs_before", "x:2,6; z:2,6; $s:={2,4}; $t:={2,4}",
     "a, b = split[axis=1](x, s); c, d = split[axis=1](z, t); p = sub(c, a); q = sub(d, b)"},
    {"split.pairs_before", "x:2,6; z:2,6; $s:={2,4}; $t:={4,2}",
     "a, b = split[axis=1](x, s); c, d = split[axis=1](z, t); p = add(c, b); q = add(d, a)", false},
    {"split.unary_behind", "x:2,6; $s:={2,4}", "u = tanh(x); a, b = split[axis=1](u, s)"},
    {"split.unary_behind", "x:2,6; $s:={6}", "u = tanh(x); a = split[axis=1](u, s)", false},
});

}  // namespace
}  // namespace autograph
