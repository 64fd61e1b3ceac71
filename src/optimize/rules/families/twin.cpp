// Equal nodes become one. The pass common_subexpressions does this for a whole graph; the search needs it where its own
// rewrites bring twins about.
#include "optimize/rules/families/families.h"

namespace autograph {
namespace {

using enum RuleClass;

// Two nodes that read the same: `s`, and `t` that goes.
Rule twin(std::string_view name, std::string_view before, std::string_view after, DTypeSet dtypes = dtypes::kAll) {
  return {.name = name, .before = before, .after = after, .outputs = {"s", "t"}, .kind = shrinks, .dtypes = dtypes};
}

const Rule kRules[] = {
    twin("twin.unary", "s = unary<f>(x); t = unary<f>(x)", "s = unary<f>(x); t = s"),
    twin("twin.binary", "s = binary<f>(x, y); t = binary<f>(x, y)", "s = binary<f>(x, y); t = s"),
    twin("twin.matmul", "s = matmul(x, y); t = matmul(x, y)", "s = matmul(x, y); t = s"),
    twin("twin.conv",
         "s = conv[strides=e, pads=p, dilations=d, group=g](x, w, b...);"
         " t = conv[strides=e, pads=p, dilations=d, group=g](x, w, b...)",
         "s = conv[strides=e, pads=p, dilations=d, group=g](x, w, b...); t = s", dtypes::kFloat),
    twin("twin.concat", "s = concat[axis=k](xs...); t = concat[axis=k](xs...)", "s = concat[axis=k](xs...); t = s"),
    twin("twin.transpose", "s = transpose[perm=p](x); t = transpose[perm=p](x)", "s = transpose[perm=p](x); t = s"),
    twin("twin.average_pool",
         "s = average_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m, count_include_pad=i](x);"
         " t = average_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m, count_include_pad=i](x)",
         "s = average_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m, count_include_pad=i](x); t = s",
         dtypes::kFloat),
    twin("twin.max_pool",
         "s = max_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m](x);"
         " t = max_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m](x)",
         "s = max_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m](x); t = s", dtypes::kFloat),
};

}  // namespace

std::span<const Rule> twin_rules() { return kRules; }

}  // namespace autograph
