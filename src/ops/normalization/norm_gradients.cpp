#include "ops/normalization/norm_gradients.h"

#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"

namespace autograph {

NormalizedParts normalized_parts(const Var& x, const std::vector<int64_t>& axes, double epsilon) {
  const Var centred = x - reduce_mean(x, axes);
  const Var variance = reduce_mean(centred * centred, axes);
  const Var inverse = reciprocal(sqrt(variance + epsilon));
  return {centred, inverse, centred * inverse};
}

Var through_normalization(const NormalizedParts& parts, const Var& g, const std::vector<int64_t>& axes) {
  return parts.inverse * (g - reduce_mean(g, axes) - parts.normal * reduce_mean(g * parts.normal, axes));
}

}  // namespace autograph
