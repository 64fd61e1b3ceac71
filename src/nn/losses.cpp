#include "autograph/nn/losses.h"

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/loss.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "ops/gradients.h"

namespace autograph::nn {
namespace {

Var mean_of(const Var& x) { return reduce_mean(x, {}, false); }

// 1 for each label that counts, times the weight of its class.
Var weights_of_labels(const Var& log_prob, const Var& labels, const CrossEntropyOptions& options) {
  Var is_ignored;
  Var known = labels;
  if (options.ignore_index) {
    is_ignored = equal(labels, scalar_like(labels, static_cast<double>(*options.ignore_index)));
    known = where(is_ignored, scalar_like(labels, 0), labels);
  }
  const Var weight = options.class_weights.is_valid() ? gather(options.class_weights, known)
                                                      : filled_like(cast(known, log_prob.dtype()), 1);
  return is_ignored.is_valid() ? where(is_ignored, scalar_like(weight, 0), weight) : weight;
}

// The mean over labels of what all classes share: -sum of weight times log-probability, ignored labels left out.
Var smooth_part(const Var& log_prob, const Var& labels, const CrossEntropyOptions& options) {
  Var weighted = -log_prob;
  if (options.class_weights.is_valid()) {
    Var weights = options.class_weights;
    for (int64_t axis = 2; axis < log_prob.rank(); ++axis) weights = unsqueeze(weights, {axis - 1});
    weighted = weighted * weights;
  }
  Var of_sample = reduce_sum(weighted, {1}, false);
  if (options.ignore_index) {
    const Var is_ignored = equal(labels, scalar_like(labels, static_cast<double>(*options.ignore_index)));
    of_sample = where(is_ignored, scalar_like(of_sample, 0), of_sample);
  }
  return reduce_sum(of_sample, {}, false) / reduce_sum(weights_of_labels(log_prob, labels, options), {}, false);
}

// Labels that are probabilities of all classes.
Var soft_cross_entropy(const Var& scores, const Var& target, const CrossEntropyOptions& options) {
  AG_CHECK_USER(!options.ignore_index, ValueError,
                "[nn] cross_entropy: expected no ignore_index with probabilities, got {}", *options.ignore_index);
  const double smoothing = options.label_smoothing;
  const auto classes = static_cast<double>(scores.dim(1));
  Var weighted = log_softmax(scores, 1) * (smoothing == 0 ? target : target * (1 - smoothing) + smoothing / classes);
  if (options.class_weights.is_valid()) {
    Var weights = options.class_weights;
    for (int64_t axis = 2; axis < scores.rank(); ++axis) weights = unsqueeze(weights, {axis - 1});
    weighted = weighted * weights;
  }
  return -mean_of(reduce_sum(weighted, {1}, false));
}

bool are_probabilities(const Var& labels) { return dtypes::kFloat.contains(labels.dtype()); }

}  // namespace

Var cross_entropy(const Var& scores, const Var& labels, const CrossEntropyOptions& options) {
  const double smoothing = options.label_smoothing;
  AG_CHECK_USER(smoothing >= 0 && smoothing <= 1, ValueError,
                "[nn] cross_entropy: expected 0 <= label_smoothing <= 1, got {}", smoothing);
  if (are_probabilities(labels)) return soft_cross_entropy(scores, labels, options);
  const Var plain = softmax_cross_entropy_loss(scores, labels, options.class_weights, "mean", options.ignore_index);
  if (smoothing == 0) return plain;
  const auto classes = static_cast<double>(scores.dim(1));
  return plain * (1 - smoothing) + smooth_part(log_softmax(scores, 1), labels, options) * (smoothing / classes);
}

Var nll_loss(const Var& log_prob, const Var& labels, const CrossEntropyOptions& options) {
  AG_CHECK_USER(options.label_smoothing == 0, ValueError, "[nn] nll_loss: it has no label smoothing");
  return negative_log_likelihood_loss(log_prob, labels, options.class_weights, "mean", options.ignore_index);
}

Var mse_loss(const Var& x, const Var& target) {
  const Var difference = x - target;
  return mean_of(difference * difference);
}

Var l1_loss(const Var& x, const Var& target) { return mean_of(abs(x - target)); }

Var huber_loss(const Var& x, const Var& target, double delta) {
  AG_CHECK_USER(delta > 0, ValueError, "[nn] huber_loss: expected a delta above 0, got {}", delta);
  const Var difference = x - target;
  const Var size = abs(difference);
  const Var near = difference * difference * 0.5, far = (size - 0.5 * delta) * delta;
  return mean_of(where(less(size, scalar_like(size, delta)), near, far));
}

Var smooth_l1_loss(const Var& x, const Var& target, double beta) { return huber_loss(x, target, beta) / beta; }

// max(x, 0) - x t + log(1 + exp(-|x|)), which does not overflow; the weight of a yes multiplies what x < 0 costs.
Var bce_with_logits(const Var& x, const Var& target, const Var& positive_weight) {
  const Var no = (1 - target) * x;
  const Var of_yes = softplus(-x);  // -log(sigmoid(x))
  if (!positive_weight.is_valid()) return mean_of(no + of_yes);
  return mean_of(no + (1 + (positive_weight - 1) * target) * of_yes);
}

Var kl_div(const Var& x, const Var& target) {
  const Var zero = scalar_like(target, 0);
  const Var is_zero = equal(target, zero);
  const Var of_target = where(is_zero, zero, target * log(where(is_zero, scalar_like(target, 1), target)));
  const Var sum = reduce_sum(of_target - target * x, {}, false);
  const Var samples = reshape(slice(extents_of(x), {0}, {1}, {0}), std::vector<int64_t>{});
  return sum / cast(samples, x.dtype());
}

Var accuracy(const Var& scores, const Var& labels) {
  const Var wanted = are_probabilities(labels) ? arg_max(labels, 1, false) : labels;
  return mean_of(cast(equal(arg_max(scores, 1, false), wanted), DType::f32));
}

}  // namespace autograph::nn
