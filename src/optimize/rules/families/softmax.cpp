// Rules of the pass fuse_softmax: exp(x - max(x)) / sum(exp(x - max(x))) along one axis becomes softmax, which
// subtracts the maximum in any case and then does not overflow where the spelled-out form does.
#include "ops/defs.h"
#include "optimize/rules/families/families.h"
#include "optimize/rules/reduced_axes.h"

namespace autograph {
namespace {

using enum RuleClass;

std::vector<ValueId> make_softmax(RuleBuilder& builder) {
  const int64_t axis = *single_axis(builder.match(), "x", "a");
  return {builder.add(softmax_def(), {builder.value("x")}, {{"axis", axis}})};
}

const Rule kRules[] = {
    // exp(x - max(x)) / sum(exp(x - max(x)))
    {.name = "softmax.less_maximum",
     .before = "m = reduce_max(x, $b); e = {exp(x - m)}; s = reduce_sum(e, $a); y = {e / s}",
     .after = "y = softmax[axis=a](x)",
     .kind = always_pays,
     .guard_doc = "maximum and sum over the same single axis",
     .guard =
         [](const RuleMatch& match) {
           const auto axis = single_axis(match, "x", "a");
           return axis && axis == single_axis(match, "x", "b");
         },
     .build = make_softmax,
     .dtypes = kShortFloat},
    // exp(x) / sum(exp(x))
    {.name = "softmax.of_exponentials",
     .before = "e = exp(x); s = reduce_sum(e, $a); y = {e / s}",
     .after = "y = softmax[axis=a](x)",
     .kind = always_pays,
     .guard_doc = "the sum is over a single axis",
     .guard = [](const RuleMatch& match) { return single_axis(match, "x", "a").has_value(); },
     .build = make_softmax,
     .dtypes = kShortFloat,
     // where exp(x) overflows, the spelled-out form gives 0 elsewhere; softmax, which does not overflow, is right
     // there, and NaN for an x of inf
     .finite_only = true},
};

}  // namespace

std::span<const Rule> softmax_rules() { return kRules; }

}  // namespace autograph
