// Training: weights that learn, optimisers, and the whole step - forward, backward and update - as one graph, which
// passes, search and the memory plan treat as any other.
//
//     const Graph step = training_graph(load_onnx("resnet18.onnx").graph, {.loss = "cross_entropy", .optimizer =
//     Sgd{.learning_rate = 0.1, .momentum = 0.9}}); const Executable program = compile(step); for (const Batch& batch :
//     batches) program.run({{"x", batch.images}, {"target", batch.labels}});
//
// Weights, running statistics and what optimisers remember are states (Graph::add_state): a run leaves them in the
// program's StateStore, written over the old ones. Another program that is compiled with the same store, of the graph
// that make_trainable() gives without batch statistics, evaluates them; StateStore::copy_to() and Graph::freeze() make
// an ordinary model of it again.
//
// The optimisers compute what PyTorch's do, in the same order of operations, in the dtype of each weight; factors that
// are the same for all weights (rates, bias corrections) are computed in f64.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// What of a model learns.
struct TrainableOptions {
  /// Names of weights, with * and ?, several with commas between; "all": every float constant that is no scalar, but
  /// for those that decide about shapes, statistics of batch norms, and masks (elements of 1e6 and more, or infinite;
  /// or nothing but 0 and one number of -1000 or less).
  std::string weights = "all";
  /// Batch norms normalise with the mean and variance of their batch and update their running statistics, as PyTorch's
  /// do while training (the running variance is that of a sample). False: with the running ones, for evaluation; the
  /// states have the same names.
  bool batch_statistics = true;
};

/// A model whose weights are states.
struct TrainableModel {
  Graph graph;                       ///< Inputs and outputs are those of the model.
  std::vector<std::string> weights;  ///< Names of the states that learn, in the order of the model.
};

/// Makes states of weights and of the statistics of batch norms, before any pass may fold or merge them; they keep
/// their names, unnamed ones are called after their reader. Float states of the model that nothing updates are weights,
/// too. Throws ValueError, with the nearest name, when a pattern fits no weight.
TrainableModel make_trainable(const Graph& model, const TrainableOptions& options = {});

/// torch.optim.SGD: stochastic gradient descent.
struct Sgd {
  double learning_rate = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

/// torch.optim.Adam (Kingma and Ba 2015); weight decay is added to the gradient. Lazy, it is torch.optim.SparseAdam for
/// tables that gather alone reads, along their first axis: rows that a step has not read keep their elements and
/// moments, so that it costs what the read rows do and gives other numbers than Adam. Other weights are Adam's.
struct Adam {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool lazy = false;  ///< Of graphs alone, without weight decay, amsgrad and accumulation.
};

/// torch.optim.AdamW (Loshchilov and Hutter 2019): weight decay beside the gradient.
struct AdamW {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
};

/// torch.optim.RMSprop.
struct RmsProp {
  double learning_rate = 1e-2;
  double alpha = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
};

/// torch.optim.Adagrad (Duchi et al. 2011).
struct Adagrad {
  double learning_rate = 1e-2;
  double learning_rate_decay = 0;
  double weight_decay = 0;
  double initial_accumulator = 0;
  double epsilon = 1e-10;
};

/// Lion (Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", program 1).
struct Lion {
  double learning_rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;
};

/// torch.optim.Adadelta (Zeiler 2012).
struct Adadelta {
  double learning_rate = 1;
  double rho = 0.9;
  double epsilon = 1e-6;
  double weight_decay = 0;
};

/// torch.optim.Adamax (Kingma and Ba 2015, section 7.1): Adam by the largest gradient instead of the mean square.
struct Adamax {
  double learning_rate = 2e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
};

/// torch.optim.NAdam (Dozat 2016): Adam with Nesterov's momentum, which grows with `momentum_decay`.
struct NAdam {
  double learning_rate = 2e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;  ///< Beside the gradient, as AdamW's.
};

/// torch.optim.RAdam (Liu et al. 2020): Adam without adapting while the mean square comes from too few gradients.
struct RAdam {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false;  ///< Beside the gradient, as AdamW's.
};

using Optimizer = std::variant<Sgd, Adam, AdamW, RmsProp, Adagrad, Lion, Adadelta, Adamax, NAdam, RAdam>;

/// The names that find_optimizer() knows: those above in small letters, and "sparse_adam", a lazy Adam.
std::vector<std::string> optimizer_names();

/// The optimiser of that name as it is when nothing is said; ValueError with the nearest name for others.
Optimizer find_optimizer(const std::string& name);

/// The loss is multiplied by a factor before gradients are formed, so that small ones do not vanish in f16, and the
/// gradients divided by it afterwards (torch.amp.GradScaler).
struct LossScale {
  double initial = 65536;
  /// A step whose gradients are not finite is left out and the factor halved; after `growth_interval` steps without
  /// one it is doubled. False: the factor stays, and every step counts.
  bool dynamic = true;
  int64_t growth_interval = 2000;
};

/// Weights that are updated otherwise than the others.
struct WeightGroup {
  std::string weights;                      ///< Their names, with * and ?, several with commas between.
  double rate_factor = 1;                   ///< Times the learning rate.
  std::optional<double> weight_decay = {};  ///< Instead of the optimiser's: 0 for biases and norms.
};

/// What happens to gradients before the optimiser sees them, and what else differs from plain updates.
struct UpdateOptions {
  /// All gradients together, as one vector, are made at most this long (torch.nn.utils.clip_grad_norm_).
  std::optional<double> clip_norm = {};
  /// Each element is brought into [-clip_value, clip_value], before clip_norm.
  std::optional<double> clip_value = {};
  std::optional<LossScale> loss_scale = {};
  /// Gradients are averaged over this many runs, the last of which updates the weights.
  int64_t accumulate = 1;
  /// A weight belongs to the first group that its name fits, or to none.
  std::vector<WeightGroup> groups = {};
  /// Keep an exponential average of each weight, average * before + (1 - average) * now after each update, as the state
  /// "ema/WEIGHT".
  std::optional<double> average = {};
};

/// Begins the names of averages.
inline constexpr const char* kAveragePrefix = "ema/";

/// What minimize() has added to the graph.
struct UpdateStep {
  Var learning_rate;  ///< State "optimizer/learning_rate", f64 []: StateStore::set() changes it between runs.
  Var step;           ///< State "optimizer/step", i64 []: updates done.
  Var gradient_norm;  ///< Length of all gradients before clip_norm, f32 or f64 []; only with clip_norm.
};

/// Adds gradients of `loss` (one element) with respect to `weights`, which are float states, and their updates. What an
/// optimiser remembers of a weight becomes the state "optimizer/KIND/WEIGHT". Weights that the loss does not depend on
/// stay as they are. Throws ValueError where a weight is no float state or is updated already, where an option is out
/// of its range, and what grad() throws.
UpdateStep minimize(const Var& loss, const std::vector<Var>& weights, const Optimizer& optimizer,
                    const UpdateOptions& options = {});

/// What training_graph() makes of a model.
struct TrainingOptions {
  /// "cross_entropy": of scores [n, classes, d...] (or of the softmax of them) with the further input "target", i64
  /// [n, d...]; "soft_cross_entropy": the same with probabilities of all classes, f32 of the shape of the scores;
  /// "token_cross_entropy": the same with classes in the last dim; "mse": mean squared difference from the
  /// further input "target" of the output's shape; otherwise as GradientGraphOptions::loss.
  std::string loss = "cross_entropy";
  std::string output = {};  ///< Of which output the first three are; "": the first of floats.
  TrainableOptions trainable = {};
  Optimizer optimizer = Sgd{};
  UpdateOptions update = {};
  uint64_t seed = 0;  ///< Of the weights of the loss "sum".
};

/// One training step of a model. Outputs: "loss", and with clip_norm "gradient_norm". Throws what make_trainable() and
/// minimize() throw, and ValueError or ShapeError where the loss does not fit the output.
Graph training_graph(const Graph& model, const TrainingOptions& options = {});

/// What the model that training_graph() trains is worth: the same loss of the same inputs, on states of the same names,
/// with the running statistics of batch norms; it updates nothing. Outputs: "loss", and with the cross entropies
/// "accuracy", the share of labels that have the largest score. Throws as training_graph(), but for models without
/// weights, which are worth something, too.
Graph evaluation_graph(const Graph& model, const TrainingOptions& options = {});

}  // namespace autograph
