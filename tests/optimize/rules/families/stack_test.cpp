// Cases for the rules that make one layer of several with inputs and weights of their own.
#include "optimize/rules/rule_cases.h"

namespace autograph {
namespace {

[[maybe_unused]] const bool kAdded = add_rule_cases({
    {"stack.products", "x:2,3; y:2,3; $v:3,4; $w:3,4", "s = matmul(x, v); t = matmul(y, w); z = sub(s, t)"},
    {"stack.products", "x:1,2,3; y:1,2,3; u:1,2,3; $v:3,4; $w:3,4; $a:3,4",
     "s = matmul(x, v); t = matmul(y, w); r = matmul(u, a); z = concat[axis=2](r, s, t)"},
    // The pieces of one split, in another order than their readers: what was split is the stack.
    {"stack.products", "x:4,3; $c:={2,2}; $v:3,4; $w:3,4",
     "a, b = split[axis=0](x, c); s = matmul(b, v); t = matmul(a, w); z = sub(s, t)"},
    {"stack.products", "x:2,3; y:2,3; $v:3,4; $w:3,5", "s = matmul(x, v); t = matmul(y, w); z = concat[axis=1](s, t)",
     false},
    {"stack.products", "x:2,3; y:4,3; $v:3,4; $w:3,4", "s = matmul(x, v); t = matmul(y, w); z = concat[axis=0](s, t)",
     false},
    {"stack.products", "x:2,3; y:2,3; $v:3,4; w:3,4", "s = matmul(x, v); t = matmul(y, w); z = sub(s, t)", false},
    {"stack.products", "x:2,3; $v:3,4; $w:3,4", "s = matmul(x, v); t = matmul(x, w); z = sub(s, t)", false},
    {"stack.products", "x:3; y:3; $v:3,4; $w:3,4", "s = matmul(x, v); t = matmul(y, w); z = sub(s, t)", false},
    // The second needs the first.
    {"stack.products", "x:3,3; $v:3,3; $w:3,3", "s = matmul(x, v); a = tanh(s); t = matmul(a, w); z = sub(s, t)",
     false},
    // Nothing leads from one to the other.
    {"stack.products", "x:2,3; y:2,3; $v:3,4; $w:3,4", "s = matmul(x, v); t = matmul(y, w)", false},

    {"stack.layers", "x:2,3; y:2,3; $v:3,4; $w:3,4; $b:4; $c:4",
     "a = matmul(x, v); s = add(a, b); d = matmul(y, w); t = add(c, d); z = sub(s, t)"},
    {"stack.layers", "x:2,1,3; y:2,1,3; $v:3,4; $w:3,4; $b:1,4; $c:4",
     "a = matmul(x, v); s = add(a, b); d = matmul(y, w); t = add(c, d); z = sub(s, t)"},
    {"stack.layers", "x:2,3; y:2,3; $v:3,4; $w:3,4; $b:4; $c:2,4",
     "a = matmul(x, v); s = add(a, b); d = matmul(y, w); t = add(c, d); z = sub(s, t)", false},
    {"stack.layers", "x:2,3; y:2,3; $v:3,4; $w:3,4; $b:4; $c:2,1,4",
     "a = matmul(x, v); s = add(a, b); d = matmul(y, w); t = add(c, d); z = sub(s, t)", false},
    // The second product is read elsewhere.
    {"stack.layers", "x:2,3; y:2,3; $v:3,4; $w:3,4; $b:4; $c:4",
     "a = matmul(x, v); s = add(a, b); d = matmul(y, w); t = add(c, d); z = sub(s, t)", false, "d"},

    {"stack.convolutions", "x:2,3,5; y:2,3,5; $v:4,3,3; $w:4,3,3; $b:4",
     "s = conv[pads=[1,1]](x, v, b); t = conv[pads=[1,1]](y, w); z = sub(s, t)"},
    // 4 channels in 2 groups and 2 in one: 2 in and 3 out of each.
    {"stack.convolutions", "x:1,4,5; y:1,2,5; $v:6,2,3; $w:3,2,3; $c:3",
     "s = conv[group=2, strides=[2]](x, v); t = conv[strides=[2]](y, w, c); z = concat[axis=1](t, s)"},
    {"stack.convolutions", "x:1,5,4,4; $c:={2,3}; $v:2,1,3,3; $w:3,1,3,3",
     "a, b = split[axis=1](x, c); s = conv[group=3](b, w); t = conv[group=2](a, v); z = concat[axis=1](s, t)"},
    {"stack.convolutions", "x:1,4,5; y:1,2,5; $v:4,2,3; $w:3,2,3",
     "s = conv[group=2](x, v); t = conv(y, w); z = concat[axis=1](t, s)", false},
    {"stack.convolutions", "x:1,4,5; y:1,2,5; $v:3,4,3; $w:3,2,3",
     "s = conv(x, v); t = conv(y, w); z = concat[axis=1](t, s)", false},
    {"stack.convolutions", "x:1,2,5; y:1,2,5; $v:3,2,3; $w:3,2,3",
     "s = conv[pads=[1,1]](x, v); t = conv[pads=[2,0]](y, w); z = sub(t, s)", false},
    {"stack.convolutions", "x:1,2,5; $v:3,2,3; $w:3,2,3", "s = conv(x, v); t = conv(x, w); z = sub(t, s)", false},
    {"stack.convolutions", "x:1,2,5; y:1,2,5; $v:3,2,3; $w:3,2,3; b:3",
     "s = conv(x, v, b); t = conv(y, w); z = sub(t, s)", false},
});

}  // namespace
}  // namespace autograph
