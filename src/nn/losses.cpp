// Losses element by element, and what becomes of them.
#include "autograph/nn/losses.h"

#include <cmath>
#include <numbers>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "nn/reduction.h"
#include "ops/gradients.h"

namespace autograph::nn {

Var over_samples(const Var& sum, const Var& x) {
  AG_CHECK_USER(x.rank() > 0, ShapeError, "[nn] batch_mean: expected a first extent, which counts samples, got {}",
                to_string(x.type()));
  return sum / cast(extent_of(x, 0), sum.dtype());
}

Var reduced(const Var& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::none: return losses;
    case Reduction::mean: return reduce_mean(losses, {}, false);
    case Reduction::sum: return reduce_sum(losses, {}, false);
    case Reduction::batch_mean: return over_samples(reduce_sum(losses, {}, false), losses);
  }
  throw ValueError(
      fmt::format("[nn] reduction: expected none, mean, sum or batch_mean, got {}", static_cast<int>(reduction)));
}

Var mse_loss(const Var& x, const Var& target, Reduction reduction) {
  const Var difference = x - target;
  return reduced(difference * difference, reduction);
}

Var l1_loss(const Var& x, const Var& target, Reduction reduction) { return reduced(abs(x - target), reduction); }

Var huber_loss(const Var& x, const Var& target, double delta, Reduction reduction) {
  AG_CHECK_USER(delta > 0, ValueError, "[nn] huber_loss: expected a delta above 0, got {}", delta);
  const Var difference = x - target;
  const Var size = abs(difference);
  const Var near = difference * difference * 0.5, far = (size - 0.5 * delta) * delta;
  return reduced(where(size < delta, near, far), reduction);
}

Var smooth_l1_loss(const Var& x, const Var& target, double beta, Reduction reduction) {
  AG_CHECK_USER(beta >= 0, ValueError, "[nn] smooth_l1_loss: expected a beta of 0 or more, got {}", beta);
  return beta == 0 ? l1_loss(x, target, reduction) : huber_loss(x, target, beta, reduction) / beta;
}

// max(x, 0) - x t + log(1 + exp(-|x|)), which does not overflow; the weight of a yes multiplies what x < 0 costs.
Var bce_with_logits(const Var& x, const Var& target, const BceOptions& options) {
  const Var no = (1 - target) * x;
  Var of_yes = softplus(-x);  // -log(sigmoid(x))
  if (options.positive_weight.is_valid()) of_yes *= 1 + (options.positive_weight - 1) * target;
  const Var loss = no + of_yes;
  return reduced(options.weight.is_valid() ? loss * options.weight : loss, options.reduction);
}

Var kl_div(const Var& x, const Var& target, Reduction reduction, bool log_target) {
  if (log_target) return reduced(exp(target) * (target - x), reduction);
  const Var zero = scalar_like(target, 0);
  const Var is_zero = equal(target, zero);
  const Var of_target = where(is_zero, zero, target * log(where(is_zero, scalar_like(target, 1), target)));
  return reduced(of_target - target * x, reduction);
}

Var poisson_nll_loss(const Var& x, const Var& target, const PoissonOptions& options) {
  Var loss = options.log_input ? exp(x) - target * x : x - target * log(x + options.epsilon);
  if (options.full) {
    const Var is_large = target > 1;
    const Var n = where(is_large, target, scalar_like(target, 1));  // no logarithm of what is not used
    const Var stirling = n * log(n) - n + 0.5 * log(2 * std::numbers::pi * n);
    loss += where(is_large, stirling, scalar_like(target, 0));
  }
  return reduced(loss, options.reduction);
}

Var gaussian_nll_loss(const Var& x, const Var& target, const Var& variance, const GaussianOptions& options) {
  const Var too_small = relu(options.epsilon - variance);
  const Var v = variance + stop_gradient(too_small);
  const Var difference = x - target;
  const Var loss = 0.5 * (log(v) + difference * difference / v);
  return reduced(options.full ? loss + 0.5 * std::log(2 * std::numbers::pi) : loss, options.reduction);
}

}  // namespace autograph::nn
