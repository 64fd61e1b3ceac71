// Cases for the rules of group normalization.
#include "optimize/rules/rule_cases.h"

namespace autograph {
namespace {

[[maybe_unused]] const bool kAdded = add_rule_cases({
    {"normalization.group", "x:2,4,3; $s:={2,2,-1}; $g:2; $b:2; $t:={2,4,3}",
     "r = reshape(x, s); n = instance_normalization(r, g, b); y = reshape(n, t)"},
    {"normalization.group", "x:2,4,3; $s:={0,4,-1}; $g:4; $b:4; $t:={0,4,-1}",
     "r = reshape(x, s); n = instance_normalization[epsilon=0.25](r, g, b); y = reshape(n, t); z = relu(y)"},
    // Another shape behind it; groups that span instances; groups that cut a channel.
    {"normalization.group", "x:2,4,3; $s:={2,2,-1}; $g:2; $b:2; $t:={2,3,4}",
     "r = reshape(x, s); n = instance_normalization(r, g, b); y = reshape(n, t)", false},
    {"normalization.group", "x:2,4,3; $s:={1,4,-1}; $g:4; $b:4; $t:={2,4,3}",
     "r = reshape(x, s); n = instance_normalization(r, g, b); y = reshape(n, t)", false},
    {"normalization.group", "x:2,4,3; $s:={2,6,-1}; $g:6; $b:6; $t:={2,4,3}",
     "r = reshape(x, s); n = instance_normalization(r, g, b); y = reshape(n, t)", false},
    // Parameters that are not known.
    {"normalization.group", "x:2,4,3; $s:={2,2,-1}; g:2; $b:2; $t:={2,4,3}",
     "r = reshape(x, s); n = instance_normalization(r, g, b); y = reshape(n, t)", false},
    {"normalization.group_scale", "x:2,4,3; $g:4; $b:4; $s:4,1",
     "n = group_normalization[num_groups=2](x, g, b); y = mul(s, n)"},
    {"normalization.group_scale", "x:2,4,3; $g:4; $b:4; $s:1,1,1",
     "n = group_normalization[num_groups=4](x, g, b); y = mul(n, s)"},
    {"normalization.group_scale", "x:2,4,3; $g:4; $b:4; $s:3",
     "n = group_normalization[num_groups=2](x, g, b); y = mul(s, n)", false},
    {"normalization.group_scale", "x:2,4,3; $g:4; $b:4; $s:2,4,1",
     "n = group_normalization[num_groups=2](x, g, b); y = mul(s, n)", false},
    {"normalization.group_bias", "x:2,4,3; $g:4; $b:4; $c:1,4,1",
     "n = group_normalization[num_groups=1](x, g, b); y = add(c, n)"},
    {"normalization.group_bias", "x:2,4,3; $g:4; $b:4; $c:1,1,3",
     "n = group_normalization[num_groups=1](x, g, b); y = add(c, n)", false},
    {"normalization.group_bias", "x:2,4,3; $g:4; $b:4; $c:4,1",
     "n = group_normalization[num_groups=1](x, g, b); y = add(c, n)", false, "n"},
});

}  // namespace
}  // namespace autograph
