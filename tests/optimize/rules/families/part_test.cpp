// Cases for the rules that take products and convolutions of what is joined apart.
#include "optimize/rules/rule_cases.h"

namespace autograph {
namespace {

[[maybe_unused]] const bool kAdded = add_rule_cases({
    {"part.conv", "x:2,3,5; y:2,2,5; $w:4,5,3; $b:4", "c = concat[axis=1](x, y); z = conv(c, w, b)"},
    {"part.conv", "x:1,3,5,5; y:1,2,5,5; u:1,1,5,5; $w:4,6,3,3",
     "c = concat[axis=1](x, y, u); z = conv[pads=[1,0,1,0], strides=[2,1], dilations=[1,2]](c, w)"},
    // What takes longest is added last; others read the concat, too, and one value stands in it twice.
    {"part.conv", "x:1,3,5; y:1,2,5; $w:4,8,1; $b:4",
     "a = tanh(x); r = relu(a); c = concat[axis=-2](r, y, x); z = conv(c, w, b); u = relu(c)", true, "u"},
    {"part.conv", "x:1,3,5; $w:4,6,1", "c = concat[axis=1](x, x); z = conv(c, w)"},
    {"part.conv", "x:1,4,5; y:1,4,5; $w:4,4,1", "c = concat[axis=1](x, y); z = conv[group=2](c, w)", false},
    {"part.conv", "x:1,4,5; y:1,4,5; $w:4,4,3", "c = concat[axis=2](x, y); z = conv(c, w)", false},
    {"part.conv", "x:1,2,5; $v:1,2,5; $w:4,4,3", "c = concat[axis=1](x, v); z = conv(c, w)", false},
    {"part.conv", "x:1,1,3; $w:4,9,3", "c = concat[axis=1](x, x, x, x, x, x, x, x, x); z = conv(c, w)", false},
    {"part.conv", "x:1,4,5; $w:4,4,3", "z = conv(x, w)", false},

    {"part.last_of_conv", "x:2,3,5; y:2,2,5; u:2,1,5; $w:4,6,3; $b:4",
     "t = tanh(y); c = concat[axis=1](x, t, u); z = conv[pads=[1,1]](c, w, b)"},
    {"part.last_of_conv", "x:2,3,5; y:2,2,5; $w:4,5,3", "c = concat[axis=1](x, y); z = conv(c, w)", false},

    {"part.product", "x:2,3; y:2,5; $w:8,4", "c = concat[axis=1](x, y); z = matmul(c, w)"},
    {"part.product", "x:3,2,3; y:3,2,5; u:3,2,1; $w:9,4",
     "a = tanh(x); c = concat[axis=-1](a, y, u); z = matmul(c, w); r = relu(c)", true, "r"},
    {"part.product", "x:2,3; y:2,3; $w:3,4", "c = concat[axis=0](x, y); z = matmul(c, w)", false},
    {"part.product", "x:3,2,3; y:3,2,5; $w:3,8,4", "c = concat[axis=2](x, y); z = matmul(c, w)", false},
    {"part.product", "x:3; y:5; $w:8,4", "c = concat[axis=0](x, y); z = matmul(c, w)", false},

    {"part.last_of_product", "x:2,3; y:2,5; u:2,1; $w:9,4",
     "a = tanh(x); c = concat[axis=1](a, y, u); z = matmul(c, w)"},
    {"part.last_of_product", "x:2,3; y:2,5; $w:8,4", "c = concat[axis=1](x, y); z = matmul(c, w)", false},
});

}  // namespace
}  // namespace autograph
