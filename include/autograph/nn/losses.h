// Losses, as torch.nn.functional computes them: means, unless another reduction is asked for.
#pragma once

#include <cstdint>
#include <optional>

#include "autograph/builder.h"

namespace autograph::nn {

/// What becomes of the losses of all elements, or of all samples.
enum class Reduction : uint8_t {
  none,        ///< They stay as they are.
  mean,        ///< Their mean: a scalar.
  sum,         ///< Their sum: a scalar.
  batch_mean,  ///< Their sum by the number of samples, which is the first extent: a scalar.
};

/// Options of cross_entropy() and nll_loss().
struct CrossEntropyOptions {
  double label_smoothing = 0;                ///< This much of each label goes to all classes in equal shares.
  std::optional<int64_t> ignore_index = {};  ///< Labels of this number do not count.
  Var class_weights = {};                    ///< [classes]: weights of labels, by which the mean divides.
  Reduction reduction = Reduction::mean;     ///< none: [n, d...], 0 where a label is ignored.
};

/// Of scores [n, classes, d...], before any softmax, and labels i64 [n, d...]; or probabilities of all classes, as
/// mixup makes them: floats of the shape of the scores. Of probabilities the mean divides by their number whatever the
/// class weights, and none can be ignored.
Var cross_entropy(const Var& scores, const Var& labels, const CrossEntropyOptions& options = {});
/// Of log-probabilities [n, classes, d...].
Var nll_loss(const Var& log_prob, const Var& labels, const CrossEntropyOptions& options = {});

/// (x - target)^2.
Var mse_loss(const Var& x, const Var& target, Reduction reduction = Reduction::mean);
/// |x - target|.
Var l1_loss(const Var& x, const Var& target, Reduction reduction = Reduction::mean);
/// Half the square of the difference up to `delta`, a line of slope `delta` beyond.
Var huber_loss(const Var& x, const Var& target, double delta = 1, Reduction reduction = Reduction::mean);
/// huber_loss() over `beta`: a parabola up to `beta`, beyond a line of slope 1. With `beta` 0 it is l1_loss().
Var smooth_l1_loss(const Var& x, const Var& target, double beta = 1, Reduction reduction = Reduction::mean);

/// Options of bce_with_logits().
struct BceOptions {
  Var positive_weight = {};  ///< How much more a yes counts, broadcasts to x: torch's pos_weight.
  Var weight = {};           ///< How much an element counts, broadcasts to x. The mean does not divide by it.
  Reduction reduction = Reduction::mean;
};
/// Cross entropy of a yes or no, of scores before the sigmoid; target: probabilities.
Var bce_with_logits(const Var& x, const Var& target, const BceOptions& options = {});

/// Kullback-Leibler divergence of log-probabilities x from probabilities `target`. Torch's mean, of all elements, is
/// Reduction::mean. `log_target`: the target is log-probabilities, too.
Var kl_div(const Var& x, const Var& target, Reduction reduction = Reduction::batch_mean, bool log_target = false);

/// Options of poisson_nll_loss().
struct PoissonOptions {
  bool log_input = true;  ///< Is x the logarithm of the rate? Else the rate, and `epsilon` is added before its log.
  bool full = false;      ///< Adds Stirling's approximation of log(target!) where the target is above 1.
  double epsilon = 1e-8;
  Reduction reduction = Reduction::mean;
};
/// How unlikely counts `target` are where events come at the rate that x says.
Var poisson_nll_loss(const Var& x, const Var& target, const PoissonOptions& options = {});

/// Options of gaussian_nll_loss().
struct GaussianOptions {
  bool full = false;      ///< Adds half of log(2 pi).
  double epsilon = 1e-6;  ///< Variances are this at least; their gradient does not know of it.
  Reduction reduction = Reduction::mean;
};
/// How unlikely `target` is under normal distributions of mean x and of variance `variance`, which broadcasts to x.
Var gaussian_nll_loss(const Var& x, const Var& target, const Var& variance, const GaussianOptions& options = {});

/// max(0, margin - target (a - b)) of scores: a shall be above b where the target is 1, below it where it is -1.
Var margin_ranking_loss(const Var& a, const Var& b, const Var& target, double margin = 0,
                        Reduction reduction = Reduction::mean);
/// Of distances: x where the target is 1, max(0, margin - x) where it is -1.
Var hinge_embedding_loss(const Var& x, const Var& target, double margin = 1, Reduction reduction = Reduction::mean);
/// Of vectors along the last axis, target [...] without it: 1 - cos(a, b) where that is 1, max(0, cos(a, b) - margin)
/// where it is -1.
Var cosine_embedding_loss(const Var& a, const Var& b, const Var& target, double margin = 0,
                          Reduction reduction = Reduction::mean);

/// Options of triplet_margin_loss().
struct TripletOptions {
  double margin = 1;
  double p = 2;           ///< The distance is this norm: the p-th root of the sum of the p-th powers.
  double epsilon = 1e-6;  ///< Added to each difference.
  bool swap = false;      ///< Takes the distance of positive and negative where that is less: the distance swap.
  Reduction reduction = Reduction::mean;
};
/// max(0, margin + |anchor - positive| - |anchor - negative|) of vectors along the last axis.
Var triplet_margin_loss(const Var& anchor, const Var& positive, const Var& negative,
                        const TripletOptions& options = {});

/// Options of ctc_loss().
struct CtcOptions {
  int64_t blank = 0;           ///< The class between labels.
  bool zero_infinity = false;  ///< Samples whose labels do not fit into their steps cost nothing; else infinity.
  /// none: of each sample, [batch]. The mean, and it alone, divides what a sample costs by its number of labels.
  Reduction reduction = Reduction::mean;
};

/// Connectionist temporal classification: -log of the probability that the steps, after equal ones in a row have become
/// one and blanks have gone, spell the labels. Log-probabilities [steps, batch, classes], targets i64 [batch, labels],
/// and how many of the steps and labels of each sample count, i64 [batch]; all extents must be known.
Var ctc_loss(const Var& log_prob, const Var& targets, const Var& input_lengths, const Var& target_lengths,
             const CtcOptions& options = {});

/// The share of rows of scores [n, classes] whose largest is that of the label, or of the largest of the label's
/// probabilities: f32 [].
Var accuracy(const Var& scores, const Var& labels);

}  // namespace autograph::nn
