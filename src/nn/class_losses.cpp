// Losses of classes: labels, or probabilities of all classes.
#include "autograph/nn/losses.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/loss.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "nn/reduction.h"
#include "ops/gradients.h"

namespace autograph::nn {
namespace {

// Invalid where no label is ignored.
Var find_ignored(const Var& labels, const CrossEntropyOptions& options) {
  if (!options.ignore_index) return {};
  return equal(labels, scalar_like(labels, static_cast<double>(*options.ignore_index)));
}

Var zero_where(const Var& is_ignored, const Var& x) {
  return is_ignored.is_valid() ? where(is_ignored, scalar_like(x, 0), x) : x;
}

// 1 for each label that counts, times the weight of its class.
Var weights_of_labels(const Var& log_prob, const Var& labels, const Var& is_ignored,
                      const CrossEntropyOptions& options) {
  const Var known = zero_where(is_ignored, labels);
  const Var weight = options.class_weights.is_valid() ? gather(options.class_weights, known)
                                                      : filled_like(cast(known, log_prob.dtype()), 1);
  return zero_where(is_ignored, weight);
}

// x [n, classes, d...] times the weight of each class.
Var times_class_weights(const Var& x, const CrossEntropyOptions& options) {
  if (!options.class_weights.is_valid()) return x;
  Var weights = options.class_weights;
  for (int64_t axis = 2; axis < x.rank(); ++axis) weights = unsqueeze(weights, {axis - 1});
  return x * weights;
}

// What all classes share: -sum of weight times log-probability, ignored labels left out; the mean divides as that of
// labels does.
Var smooth_part(const Var& log_prob, const Var& labels, const CrossEntropyOptions& options) {
  const Var is_ignored = find_ignored(labels, options);
  const Var of_sample = zero_where(is_ignored, reduce_sum(times_class_weights(-log_prob, options), {1}, false));
  if (options.reduction != Reduction::mean) return reduced(of_sample, options.reduction);
  return reduce_sum(of_sample, {}, false) /
         reduce_sum(weights_of_labels(log_prob, labels, is_ignored, options), {}, false);
}

// Labels that are probabilities of all classes.
Var soft_cross_entropy(const Var& scores, const Var& target, const CrossEntropyOptions& options) {
  AG_CHECK_USER(!options.ignore_index, ValueError,
                "[nn] cross_entropy: expected no ignore_index with probabilities, got {}", *options.ignore_index);
  const double smoothing = options.label_smoothing;
  const auto classes = static_cast<double>(scores.dim(1));
  const Var weighted =
      log_softmax(scores, 1) * (smoothing == 0 ? target : target * (1 - smoothing) + smoothing / classes);
  return reduced(-reduce_sum(times_class_weights(weighted, options), {1}, false), options.reduction);
}

// What the ops of losses call it; they know nothing of samples.
const char* name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::none: return "none";
    case Reduction::mean: return "mean";
    default: return "sum";
  }
}

// A loss of labels made by `op`, with the reductions that this knows and with batch_mean.
template <class Loss>
Var of_labels(Loss op, const Var& x, const Var& labels, const CrossEntropyOptions& options) {
  const Var loss = op(x, labels, options.class_weights, name_of(options.reduction), options.ignore_index);
  return options.reduction == Reduction::batch_mean ? over_samples(loss, x) : loss;
}

bool are_probabilities(const Var& labels) { return dtypes::kFloat.contains(labels.dtype()); }

}  // namespace

Var cross_entropy(const Var& scores, const Var& labels, const CrossEntropyOptions& options) {
  const double smoothing = options.label_smoothing;
  AG_CHECK_USER(smoothing >= 0 && smoothing <= 1, ValueError,
                "[nn] cross_entropy: expected 0 <= label_smoothing <= 1, got {}", smoothing);
  if (are_probabilities(labels)) return soft_cross_entropy(scores, labels, options);
  const Var plain = of_labels(softmax_cross_entropy_loss, scores, labels, options);
  if (smoothing == 0) return plain;
  const auto classes = static_cast<double>(scores.dim(1));
  return plain * (1 - smoothing) + smooth_part(log_softmax(scores, 1), labels, options) * (smoothing / classes);
}

Var nll_loss(const Var& log_prob, const Var& labels, const CrossEntropyOptions& options) {
  AG_CHECK_USER(options.label_smoothing == 0, ValueError, "[nn] nll_loss: it has no label smoothing");
  return of_labels(negative_log_likelihood_loss, log_prob, labels, options);
}

Var accuracy(const Var& scores, const Var& labels) {
  const Var wanted = are_probabilities(labels) ? arg_max(labels, 1, false) : labels;
  return reduced(cast(equal(arg_max(scores, 1, false), wanted), DType::f32), Reduction::mean);
}

}  // namespace autograph::nn
