// Losses, as torch.nn.functional computes them. All are scalars: means, unless it is said otherwise.
#pragma once

#include <cstdint>
#include <optional>

#include "autograph/builder.h"

namespace autograph::nn {

/// Options of cross_entropy().
struct CrossEntropyOptions {
  double label_smoothing = 0;                ///< This much of each label goes to all classes in equal shares.
  std::optional<int64_t> ignore_index = {};  ///< Labels of this number do not count.
  Var class_weights = {};                    ///< [classes]: weights of labels, by which the mean divides.
};

/// Of scores [n, classes, d...], before any softmax, and labels i64 [n, d...].
Var cross_entropy(const Var& scores, const Var& labels, const CrossEntropyOptions& options = {});
/// Of log-probabilities [n, classes, d...].
Var nll_loss(const Var& log_prob, const Var& labels, const CrossEntropyOptions& options = {});

/// (x - target)^2.
Var mse_loss(const Var& x, const Var& target);
/// |x - target|.
Var l1_loss(const Var& x, const Var& target);
/// Half the square of the difference up to `delta`, a line of slope `delta` beyond.
Var huber_loss(const Var& x, const Var& target, double delta = 1);
/// huber_loss() over `beta`: a parabola up to `beta`, beyond a line of slope 1.
Var smooth_l1_loss(const Var& x, const Var& target, double beta = 1);
/// Cross entropy of a yes or no, of scores before the sigmoid; target: probabilities. `positive_weight`: how much more
/// a yes counts, broadcasts to x.
Var bce_with_logits(const Var& x, const Var& target, const Var& positive_weight = {});
/// Kullback-Leibler divergence of log-probabilities x from probabilities `target`, summed over all but the first axis:
/// torch's reduction "batchmean".
Var kl_div(const Var& x, const Var& target);

/// The share of rows of scores [n, classes] whose largest is that of the label: f32 [].
Var accuracy(const Var& scores, const Var& labels);

}  // namespace autograph::nn
