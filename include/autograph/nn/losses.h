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

/// Of scores [n, classes, d...], before any softmax, and labels i64 [n, d...]; or probabilities of all classes, as
/// mixup makes them: floats of the shape of the scores. Of probabilities the mean divides by their number whatever the
/// class weights, and none can be ignored.
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

/// Options of ctc_loss().
struct CtcOptions {
  int64_t blank = 0;           ///< The class between labels.
  bool zero_infinity = false;  ///< Samples whose labels do not fit into their steps cost nothing; else infinity.
};

/// Connectionist temporal classification: -log of the probability that the steps, after equal ones in a row have become
/// one and blanks have gone, spell the labels. Log-probabilities [steps, batch, classes], targets i64 [batch, labels],
/// and how many of the steps and labels of each sample count, i64 [batch]; all extents must be known. The mean over the
/// batch of what each costs by its number of labels, as torch's reduction "mean".
Var ctc_loss(const Var& log_prob, const Var& targets, const Var& input_lengths, const Var& target_lengths,
             const CtcOptions& options = {});
/// The same for each sample, as it is: [batch].
Var ctc_loss_each(const Var& log_prob, const Var& targets, const Var& input_lengths, const Var& target_lengths,
                  const CtcOptions& options = {});

/// The share of rows of scores [n, classes] whose largest is that of the label, or of the largest of the label's
/// probabilities: f32 [].
Var accuracy(const Var& scores, const Var& labels);

}  // namespace autograph::nn
