// Cases for the rules that cut the sums of products and convolutions into parts.
#include "optimize/rules/rule_cases.h"

namespace autograph {
namespace {

[[maybe_unused]] const bool kAdded = add_rule_cases({
    {"spread.conv_2", "x:2,6,5; w:4,6,3; $b:4", "z = conv(x, w, b)"},
    // Cut as evenly as may be; the pieces that another reader made are read again.
    {"spread.conv_2", "x:2,5,5,5; $s:={3,2}; $w:4,5,3,3; $v:4,3,1,1",
     "p, q = split[axis=1](x, s); u = conv(p, v); z = conv[pads=[1,0,1,0], strides=[2,1], dilations=[1,2]](x, w)", true,
     "u"},
    {"spread.conv_2", "x:1,4,3,3,3; $w:2,4,2,2,2", "z = conv[pads=[1,1,1,1,1,1]](x, w); r = relu(z)", true, "r"},
    {"spread.conv_2", "x:1,1,5; $w:4,1,3", "z = conv(x, w)", false},
    {"spread.conv_2", "x:1,4,5; $w:4,2,1", "z = conv[group=2](x, w)", false},
    {"spread.conv_3", "x:1,7,5; $w:4,7,3", "z = conv[auto_pad=\"SAME_UPPER\"](x, w)"},
    {"spread.conv_3", "x:1,1,5; $w:4,1,3", "z = conv(x, w)", false},
    {"spread.conv_4", "x:1,3,5; $w:4,3,3; $b:4", "z = conv(x, w, b)"},  // three parts
    {"spread.conv_4", "x:1,1,5; $w:4,1,3", "z = conv(x, w)", false},
    {"spread.conv_6", "x:1,13,5; $w:4,13,1", "z = conv(x, w)"},
    {"spread.conv_6", "x:1,1,5; $w:4,1,3", "z = conv(x, w)", false},
    {"spread.conv_8", "x:1,16,4,4; $w:4,16,3,3; $b:4", "z = conv(x, w, b)"},
    {"spread.conv_8", "x:1,1,5; $w:4,1,3", "z = conv(x, w)", false},

    {"spread.product_2", "x:3,6; $w:6,4", "z = matmul(x, w)"},
    {"spread.product_2", "x:2,3,6; w:2,6,4", "z = matmul(x, w)"},
    {"spread.product_2", "x:6; w:6,4", "z = matmul(x, w)"},
    {"spread.product_2", "x:3,6; w:6", "z = matmul(x, w)"},
    {"spread.product_2", "x:6,6", "z = matmul(x, x)"},
    {"spread.product_2", "x:3,1; $w:1,4", "z = matmul(x, w)", false},
    {"spread.product_3", "x:3,7; $w:7,4", "z = matmul(x, w)"},
    {"spread.product_3", "x:3,1; $w:1,4", "z = matmul(x, w)", false},
    {"spread.product_4", "x:3,2; $w:2,4", "z = matmul(x, w)"},  // two parts
    {"spread.product_4", "x:3,1; $w:1,4", "z = matmul(x, w)", false},
    {"spread.product_6", "x:3,12; w:2,12,4", "z = matmul(x, w)"},
    {"spread.product_6", "x:3,1; $w:1,4", "z = matmul(x, w)", false},
    {"spread.product_8", "x:3,17; $w:17,4", "z = matmul(x, w)"},
    {"spread.product_8", "x:3,1; $w:1,4", "z = matmul(x, w)", false},
});

}  // namespace
}  // namespace autograph
