// The training loop: batches through a compiled step, an evaluation of what was held out after each epoch, metrics to
// files, checkpoints from which a killed run goes on bit for bit.
//
//     DataLoader train(open_dataset("fashion", Split::train), {.batch_size = 64, .shuffle = true, .drop_last = true});
//     DataLoader test(open_dataset("fashion", Split::test), {.batch_size = 500});
//     Trainer trainer(training_graphs(net, train, classification(net), AdamW{}), std::move(train), std::move(test),
//                     {.epochs = 10, .checkpoints = "run1", .resume = true});
//     const TrainingResult result = trainer.run();
//     net.read_from(trainer.states());
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autograph/compile.h"
#include "autograph/data.h"
#include "autograph/graph.h"
#include "autograph/nn/module.h"
#include "autograph/nn/schedules.h"
#include "autograph/train.h"

namespace autograph {

struct Checkpoint;

/// Names and numbers: "loss", "accuracy".
using Metrics = std::map<std::string, double>;

/// A loss of one batch, and what else is told about it.
struct BatchLoss {
  Var loss;                                               ///< One element.
  std::vector<std::pair<std::string, Var>> metrics = {};  ///< One element each.
};

/// From the fields of a batch, by name, to its loss; called once for a graph that trains and once for one that
/// evaluates.
using LossFunction = std::function<BatchLoss(const std::map<std::string, Var>& fields)>;

/// The two programs of a model that learns, on states of the same names. Their inputs have the names of fields.
struct TrainingGraphs {
  Graph step;        ///< Of a whole batch; gives "loss" and the metrics, and updates what learns.
  Graph evaluation;  ///< Of any number of samples, by averages where there are some; changes nothing.
};

/// Those of a module: `loss` computes what it is trained to make small, for batches of `loader`. Leaves the module in
/// training mode.
TrainingGraphs training_graphs(nn::Module& module, const DataLoader& loader, const LossFunction& loss,
                               const Optimizer& optimizer, const UpdateOptions& options = {});

/// Those of an imported model. Its one input takes the field that is not the target: of images and tables the target is
/// "label", of tokens "target"; losses of outputs alone read none. Where labels are probabilities, by Mixup or in the
/// data, cross_entropy is that of these. Throws ValueError or ShapeError where model and data do not fit.
TrainingGraphs training_graphs(const Graph& model, const DataLoader& loader, const TrainingOptions& options);

/// The evaluation of these alone: nothing in the model need be able to learn.
Graph evaluation_graph(const Graph& model, const DataLoader& loader, const TrainingOptions& options);

/// The loss of classifiers: cross entropy and accuracy of module(fields[input]) against the labels in fields[target].
LossFunction classification(nn::Module& module, std::string input = "image", std::string target = "label",
                            double label_smoothing = 0);
/// The same of models that give [batch, length, classes] for tokens, with one target for each.
LossFunction next_token(nn::Module& module, std::string input = "input", std::string target = "target");

/// What a run has learned, by the names of weights: their averages where UpdateOptions::average keeps some. States that
/// are no weights stay.
NamedTensors with_averages(const NamedTensors& states);
StateStore with_averages(const StateStore& states);

/// How a run is going.
struct TrainingProgress {
  int64_t epoch = 0;  ///< From 1.
  int64_t epochs = 0;
  int64_t step = 0;  ///< Steps done, of all runs.
  int64_t steps = 0;
  Metrics metrics = {};  ///< Means of this epoch so far.
  double samples_per_second = 0;
  double seconds_left = 0;
};

/// What an epoch gave.
struct EpochResult {
  int64_t epoch = 0;      ///< From 1.
  int64_t step = 0;       ///< Steps done at its end.
  Metrics training = {};  ///< Means over its batches, of the weights as they were at each.
  Metrics held_out = {};  ///< Of the held-out samples at its end; nothing without any.
  double learning_rate = 0;
  double seconds = 0;  ///< Without evaluation.
  double samples_per_second = 0;
};

/// What a whole run gave.
struct TrainingResult {
  std::vector<EpochResult> epochs;  ///< Those of runs that it goes on from, too.
  int64_t steps = 0;
  int64_t resumed_from = -1;               ///< Step of the checkpoint that it went on from; -1: it began anew.
  bool was_interrupted = false;            ///< should_stop said so.
  bool stopped_early = false;              ///< By patience.
  std::vector<std::string> warnings = {};  ///< Checkpoints that were damaged.
};

/// What decides about the numbers of a run.
struct RunSetting {
  std::string name;         ///< As who starts the run knows it: "--optimizer".
  std::string value;        ///< As it is shown, in UTF-8: "adamw (beta1 0.9, ...)".
  std::string advice = {};  ///< What else to try where a checkpoint has another value.
};

/// How to train.
struct TrainerOptions {
  int64_t epochs = 10;
  int64_t max_steps = 0;                    ///< Of all runs together; 0: as many as the epochs have.
  nn::Schedule schedule = {};               ///< Learning rate by step; none: the optimiser's own.
  std::optional<nn::Plateau> plateau = {};  ///< Instead: by the held-out loss, else the loss, after each epoch.
  int64_t patience = 0;                     ///< Stop when `watched` has not got better for so many epochs; 0: never.
  std::string watched = "loss";  ///< Of the held-out metrics; "accuracy" is better when larger, others when smaller.
  std::string checkpoints = {};  ///< Folder, without any unless `resume`; "": none are kept.
  int64_t checkpoint_every = 0;  ///< Steps; besides one at the end of each epoch. 0: no others.
  bool resume = false;           ///< Go on from the newest checkpoint in the folder, if there is one.
  /// These stand in each checkpoint. A run goes on only from checkpoints whose settings of the same names have the same
  /// values: optimiser, rates, data. The number of threads need not agree.
  std::vector<RunSetting> settings = {};
  std::string identity = {};  ///< The same as one text, for runs and checkpoints without settings.
  /// Texts by name that stand in each checkpoint for whoever reads its weights, run_attachments(): tokens, classes.
  std::map<std::string, std::string> attachments = {};
  std::string metrics_file = {};  ///< A line of JSON for each step: {"step":1,"epoch":1,"loss":2.30,...}; "": none.
  std::string log_folder = {};    ///< Event files for TensorBoard, and curves.svg; "": none.
  /// Of both programs; `states` may bring weights. Checkpoints fix the threads. A memory budget is for all that a run
  /// keeps at once: activations of both programs, states, and batches.
  CompileOptions compile = {};
  std::function<bool()> should_stop = {};  ///< Asked after each step; true: keep a checkpoint and return.
  std::function<void(const TrainingProgress&)> on_progress = {};  ///< Called after each step.
};

/// Settings, by name, of the run that wrote `checkpoint`; none where it had none, or where no Trainer wrote it.
std::map<std::string, std::string> run_settings(const Checkpoint& checkpoint);

/// TrainerOptions::attachments of that run.
std::map<std::string, std::string> run_attachments(const Checkpoint& checkpoint);

/// Means of what `evaluation` gives over the samples of `data`, from where it is to the end of its epoch. Its states
/// are those of `states`.
Metrics evaluate(const Graph& evaluation, const StateStore& states, DataLoader& data,
                 const CompileOptions& options = {});

/// One run of training. Not thread-safe.
class Trainer {
 public:
  /// Compiles both programs. Throws ValueError where options make no sense, UserError where checkpoints are in the
  /// folder and `resume` is not set, BudgetError where the memory budget is too small, what compile() and Checkpoints
  /// throw.
  Trainer(TrainingGraphs graphs, DataLoader training, std::optional<DataLoader> held_out, TrainerOptions options);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Trains until it is done or stopped. With a folder for checkpoints and `resume` a run that was stopped at any
  /// moment gives, bit for bit, what it would have given. Throws Error with ExitCode::failed when the loss is no number
  /// any more, UserError when a checkpoint is of another run: has other settings, or states that this run has not.
  TrainingResult run();
  /// Means over the samples of `data`, with the weights as they are.
  Metrics evaluate(DataLoader& data) const;
  /// Parameters, and what optimisers remember.
  const StateStore& states() const;
  /// Threads of a step, as Executable::threads().
  int threads() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace autograph
