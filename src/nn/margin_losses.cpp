// Losses that ask for a margin: of scores that shall be in order, of vectors that shall be near or far.
#include <cmath>

#include "autograph/nn/losses.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "base/check.h"
#include "nn/reduction.h"

namespace autograph::nn {
namespace {

// `near` where the target is 1, `far` where it is -1, nothing elsewhere.
Var near_or_far(const Var& target, const Var& near, const Var& far) {
  const Var zero = scalar_like(near, 0);
  const auto where_is = [&](double wanted, const Var& x) {
    return where(equal(target, scalar_like(target, wanted)), x, zero);
  };
  return where_is(1, near) + where_is(-1, far);
}

Var last_axis_sum(const Var& x) { return reduce_sum(x, {-1}, false); }

Var cosine(const Var& a, const Var& b) {
  constexpr double kEpsilon = 1e-12;
  return last_axis_sum(a * b) / sqrt((last_axis_sum(a * a) + kEpsilon) * (last_axis_sum(b * b) + kEpsilon));
}

Var distance(const Var& a, const Var& b, const TripletOptions& options) {
  const Var difference = a - b + options.epsilon;
  if (options.p == 1) return reduce_l1(difference, {-1}, false);
  if (options.p == 2) return reduce_l2(difference, {-1}, false);
  if (std::isinf(options.p)) return reduce_max(abs(difference), {-1}, false);
  const auto power = [&](const Var& x, double exponent) { return pow(x, scalar_like(x, exponent)); };
  return power(last_axis_sum(power(abs(difference), options.p)), 1 / options.p);
}

}  // namespace

Var margin_ranking_loss(const Var& a, const Var& b, const Var& target, double margin, Reduction reduction) {
  return reduced(relu(margin - target * (a - b)), reduction);
}

Var hinge_embedding_loss(const Var& x, const Var& target, double margin, Reduction reduction) {
  return reduced(near_or_far(target, x, relu(margin - x)), reduction);
}

Var cosine_embedding_loss(const Var& a, const Var& b, const Var& target, double margin, Reduction reduction) {
  const Var likeness = cosine(a, b);
  return reduced(near_or_far(target, 1 - likeness, relu(likeness - margin)), reduction);
}

Var triplet_margin_loss(const Var& anchor, const Var& positive, const Var& negative, const TripletOptions& options) {
  AG_CHECK_USER(options.margin > 0 && options.p > 0, ValueError,
                "[nn] triplet_margin_loss: expected margin and p above 0, got {} and {}", options.margin, options.p);
  const Var near = distance(anchor, positive, options);
  Var far = distance(anchor, negative, options);
  if (options.swap) far = min({far, distance(positive, negative, options)});
  return reduced(relu(options.margin + near - far), options.reduction);
}

}  // namespace autograph::nn
