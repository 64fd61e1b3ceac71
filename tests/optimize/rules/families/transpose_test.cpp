// Cases for the rules about transposes and reshapes.
#include "optimize/rules/rule_cases.h"

namespace autograph {
namespace {

[[maybe_unused]] const bool kAdded = add_rule_cases({
    {"transpose.compose", "x:2,3,4", "t = transpose[perm=[1,2,0]](x); u = transpose[perm=[1,0,2]](t)"},
    {"transpose.compose", "x:2,3,4", "t = transpose(x); u = transpose(t); v = relu(u)"},
    {"transpose.unary_before", "x:2,3,4", "t = transpose[perm=[1,2,0]](x); y = tanh(t)"},
    {"transpose.unary_behind", "x:2,3,4", "t = tanh(x); y = transpose(t)"},
    {"transpose.join_binary", "x:2,3,4; y:2,3,4",
     "s = transpose[perm=[1,2,0]](x); t = transpose[perm=[1,2,0]](y); v = sub(s, t)"},
    {"transpose.join_binary", "x:2,3; y:1,3", "s = transpose(x); t = transpose(y); v = sub(s, t)", false},
    {"transpose.join_binary", "x:3,3,3; y:3,3,3",
     "s = transpose[perm=[1,2,0]](x); t = transpose[perm=[1,0,2]](y); v = sub(s, t)", false},
    {"transpose.part_binary", "x:2,3,4; y:2,3,4", "v = sub(x, y); t = transpose[perm=[1,2,0]](v)"},
    {"transpose.part_binary", "x:2,3,4; y:3,4", "v = sub(x, y); t = transpose[perm=[1,2,0]](v)", false},
    {"transpose.product_of_transposed", "a:5,3,2; b:5,4,3",
     "s = transpose[perm=[0,2,1]](a); t = transpose[perm=[0,2,1]](b); m = matmul(s, t)"},
    {"transpose.product_of_transposed", "a:3,2; b:4,3", "s = transpose(a); t = transpose(b); m = matmul(s, t)"},
    {"transpose.product_of_transposed", "a:3,3,3; b:3,3,3",
     "s = transpose[perm=[2,1,0]](a); t = transpose[perm=[2,1,0]](b); m = matmul(s, t)", false},
    {"transpose.transposed_product", "a:5,2,3; b:3,4", "m = matmul(a, b); t = transpose[perm=[0,2,1]](m)"},
    {"transpose.transposed_product", "a:5,2,3; b:3,4", "m = matmul(a, b); t = transpose[perm=[2,1,0]](m)", false},
    {"transpose.behind_concat", "x:2,3,4; y:2,1,4",
     "s = transpose[perm=[1,2,0]](x); t = transpose[perm=[1,2,0]](y); c = concat[axis=0](s, t)"},
    {"transpose.behind_concat", "x:2,3,4; y:2,3,4",
     "s = transpose[perm=[1,2,0]](x); t = transpose[perm=[1,2,0]](y); c = concat[axis=-1](s, t)"},
    {"transpose.behind_concat", "x:2,2,2; y:2,2,2",
     "s = transpose[perm=[1,2,0]](x); t = transpose[perm=[1,0,2]](y); c = concat[axis=0](s, t)", false},
    {"transpose.behind_split", "x:2,3,4; $s:={1,2}", "t = transpose[perm=[1,2,0]](x); p, q = split[axis=0](t, s)"},
    {"reshape.compose", "x:2,3,4; $s:={6,-1}; $t:={3,0,2}", "r = reshape(x, s); q = reshape(r, t)"},
    {"reshape.compose", "x:2,0,4; $s:={0,4}; $t:={0,2}",
     "r = reshape[allowzero=1](x, s); q = reshape[allowzero=1](r, t)", false},
    {"reshape.remove", "x:2,3; $s:={2,-1}", "r = reshape(x, s); y = relu(r)"},
    {"reshape.remove", "x:2,3; $s:={3,-1}", "r = reshape(x, s); y = relu(r)", false},
    {"reshape.unary_before", "x:2,3; $s:={3,-1}", "r = reshape(x, s); y = relu(r)"},
    {"reshape.unary_behind", "x:2,3; $s:={3,-1}", "r = relu(x); y = reshape(r, s)"},
    {"reshape.join_binary", "x:2,3; y:2,3; $s:={3,-1}; $t:={-1,2}",
     "a = reshape(x, s); b = reshape(y, t); v = sub(a, b)"},
    {"reshape.join_binary", "x:2,3; y:3,2; $s:={6}; $t:={6}", "a = reshape(x, s); b = reshape(y, t); v = sub(a, b)",
     false},
    {"reshape.behind_product", "x:2,3,4; $s:={6,4}; $w:4,5", "r = reshape(x, s); m = matmul(r, w)"},
    {"reshape.behind_product", "x:2,3,4; $s:={12,2}; $w:2,5", "r = reshape(x, s); m = matmul(r, w)", false},
});

}  // namespace
}  // namespace autograph
