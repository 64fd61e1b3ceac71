// Equal nodes become one. The pass common_subexpressions does this for a whole graph; the search needs it where its own
// rewrites bring twins about.
#include "optimize/rules/families/families.h"

namespace autograph {
namespace {

using enum RuleClass;

const Rule kRules[] = {
    // f(x), f(x) -> f(x)
    {.name = "twin.unary",
     .before = "s = unary<f>(x); t = unary<f>(x)",
     .after = "s = unary<f>(x); t = s",
     .outputs = {"s", "t"},
     .kind = shrinks,
     .dtypes = dtypes::kAll},
    // f(x, y), f(x, y) -> f(x, y)
    {.name = "twin.binary",
     .before = "s = binary<f>(x, y); t = binary<f>(x, y)",
     .after = "s = binary<f>(x, y); t = s",
     .outputs = {"s", "t"},
     .kind = shrinks,
     .dtypes = dtypes::kAll},
    // x y, x y -> x y
    {.name = "twin.matmul",
     .before = "s = matmul(x, y); t = matmul(x, y)",
     .after = "s = matmul(x, y); t = s",
     .outputs = {"s", "t"},
     .kind = shrinks,
     .dtypes = dtypes::kAll},
    // conv(x, w), conv(x, w) -> conv(x, w)
    {.name = "twin.conv",
     .before = "s = conv[strides=e, pads=p, dilations=d, group=g](x, w, b...);"
               " t = conv[strides=e, pads=p, dilations=d, group=g](x, w, b...)",
     .after = "s = conv[strides=e, pads=p, dilations=d, group=g](x, w, b...); t = s",
     .outputs = {"s", "t"},
     .kind = shrinks},
    // [x, y, ...], [x, y, ...] -> [x, y, ...]
    {.name = "twin.concat",
     .before = "s = concat[axis=k](xs...); t = concat[axis=k](xs...)",
     .after = "s = concat[axis=k](xs...); t = s",
     .outputs = {"s", "t"},
     .kind = shrinks,
     .dtypes = dtypes::kAll},
    // x^T, x^T -> x^T
    {.name = "twin.transpose",
     .before = "s = transpose[perm=p](x); t = transpose[perm=p](x)",
     .after = "s = transpose[perm=p](x); t = s",
     .outputs = {"s", "t"},
     .kind = shrinks,
     .dtypes = dtypes::kAll},
    // mean(x), mean(x) -> mean(x)
    {.name = "twin.average_pool",
     .before = "s = average_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m, count_include_pad=i](x);"
               " t = average_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m, count_include_pad=i](x)",
     .after = "s = average_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m, count_include_pad=i](x);"
              " t = s",
     .outputs = {"s", "t"},
     .kind = shrinks},
    // max(x), max(x) -> max(x)
    {.name = "twin.max_pool",
     .before = "s = max_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m](x);"
               " t = max_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m](x)",
     .after = "s = max_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m](x); t = s",
     .outputs = {"s", "t"},
     .kind = shrinks},
};

}  // namespace

std::span<const Rule> twin_rules() { return kRules; }

}  // namespace autograph
