// Cases for the rules that make one node of equal ones.
#include "optimize/rules/rule_cases.h"

namespace autograph {
namespace {

[[maybe_unused]] const bool kAdded = add_rule_cases({
    {"twin.unary", "x:2,3", "a = leaky_relu[alpha=0.5](x); b = leaky_relu[alpha=0.5](x); c = add(a, b)"},
    {"twin.unary", "x:2,3", "a = leaky_relu[alpha=0.5](x); b = leaky_relu[alpha=0.25](x); c = add(a, b)", false},
    {"twin.unary", "x:2,3", "a = tanh(x); b = tanh(x)"},
    {"twin.binary", "x:2,3; y:3", "a = mul(x, y); b = mul(y, x); c = sub(a, b)"},
    {"twin.binary", "x:2,3; y:3", "a = sub(x, y); b = sub(y, x); c = add(a, b)", false},
    {"twin.matmul", "x:2,3; y:3,2", "a = matmul(x, y); b = matmul(x, y); c = sub(a, b)"},
    {"twin.matmul", "x:2,2; y:2,2", "a = matmul(x, y); b = matmul(y, x); c = sub(a, b)", false},
    {"twin.conv", "x:1,2,5; $w:3,2,3; $b:3", "a = conv(x, w, b); b2 = conv[strides=[1]](x, w, b); c = sub(a, b2)"},
    {"twin.conv", "x:1,2,5; $w:3,2,3; $b:3", "a = conv(x, w, b); b2 = conv(x, w); c = sub(a, b2)", false},
    {"twin.concat", "x:2,3; y:2,1", "a = concat[axis=1](x, y, x); b = concat[axis=-1](x, y, x); c = sub(a, b)"},
    {"twin.concat", "x:2,3; y:2,3", "a = concat[axis=1](x, y); b = concat[axis=1](y, x); c = sub(a, b)", false},
    {"twin.transpose", "x:2,3", "a = transpose(x); b = transpose[perm=[1,0]](x); c = sub(a, b)"},
    {"twin.average_pool", "x:1,2,5",
     "a = average_pool[kernel_shape=[2]](x); b = average_pool[kernel_shape=[2]](x); c = sub(a, b)"},
    {"twin.max_pool", "x:1,2,5", "a = max_pool[kernel_shape=[2]](x); b = max_pool[kernel_shape=[2]](x); c = sub(a, b)"},
    {"twin.max_pool", "x:1,2,5",
     "a = max_pool[kernel_shape=[3]](x); b = max_pool[kernel_shape=[2], dilations=[2]](x); c = sub(a, b)", false},
});

}  // namespace
}  // namespace autograph
