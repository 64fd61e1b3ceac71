// `autograph train TASK|MODEL.onnx --data PATH`: trains, with a progress bar, and keeps what was learned.
#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <optional>

#include "autograph/error.h"
#include "base/check.h"
#include "base/join.h"
#include "cli/interrupt.h"
#include "cli/observed_run.h"
#include "cli/options/training_flags.h"
#include "cli/sources/learning_source.h"
#include "cli/sources/token_options.h"
#include "cli/sources/training_settings.h"
#include "cli/verbs.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

constexpr const char* kPlateau = "plateau";

struct Options {
  LearningOptions learning;
  int64_t epochs = 0;  ///< 0: the task's own.
  int64_t steps = 0;
  std::string weights = "all";
  std::string from;
  std::string optimizer;
  double learning_rate = kNotGiven;
  double weight_decay = kNotGiven;
  double momentum = kNotGiven;
  bool nesterov = false;
  std::string schedule;
  int64_t warm_up = 0;
  double clip_norm = kNotGiven;
  double clip_value = kNotGiven;
  int64_t accumulate = 0;  ///< 0: the task's own.
  double average = kNotGiven;
  std::string no_decay;
  double loss_scale = kNotGiven;
  int64_t patience = 0;
  std::string checkpoint;
  int64_t checkpoint_every = 0;
  bool resume = false;
  std::string metrics;
  std::string log_dir;
  std::string output;
  ObserveOptions observe;
};

void check_output(const std::string& path, bool has_module) {
  if (path.empty()) return;
  const bool is_known = path.ends_with(".onnx") || (has_module && path.ends_with(".safetensors"));
  AG_CHECK_USER(is_known, UserError, "[train] output: expected a name ending in .onnx{}, got '{}'",
                has_module ? " or .safetensors" : "", path);
  require_writable(path);
}

void check_counts(const Options& options) {
  const std::pair<const char*, int64_t> counts[] = {
      {"epochs", options.epochs},     {"steps", options.steps},
      {"warm-up", options.warm_up},   {"accumulate", options.accumulate},
      {"patience", options.patience}, {"checkpoint-every", options.checkpoint_every}};
  for (const auto& [flag, count] : counts) {
    AG_CHECK_USER(count >= 0, UserError, "[cli] --{}: expected 0 or more, got {}", flag, count);
  }
}

// The learning rate by step; none where it falls with the held-out loss.
nn::Schedule schedule_of(const std::string& name, double rate, int64_t steps, int64_t warm_up) {
  const bool has_own = name == kPlateau || name == "one_cycle";
  AG_CHECK_USER(warm_up == 0 || !has_own, UserError,
                "[train] --warm-up: schedule {} has none to set (--schedule constant, step or cosine have)", name);
  if (name == kPlateau) return {};
  return nn::find_schedule(name, rate, std::max<int64_t>(steps, 1), warm_up);
}

void check_paths(const Options& options) {
  AG_CHECK_USER(!options.resume || !options.checkpoint.empty(), UserError, "[train] --resume: needs --checkpoint DIR");
  AG_CHECK_USER(options.checkpoint_every == 0 || !options.checkpoint.empty(), UserError,
                "[train] --checkpoint-every: needs --checkpoint DIR");
  if (!options.metrics.empty()) require_writable(options.metrics);
  if (!options.log_dir.empty()) require_writable_directory(options.log_dir);
  if (!options.checkpoint.empty()) require_writable_directory(options.checkpoint);
}

template <class Kind>
void set_momentum(Kind& kind, const Options& options) {
  if (is_given(options.momentum, "momentum")) {
    if constexpr (requires { kind.momentum; }) {
      kind.momentum = options.momentum;
    } else {
      throw UserError("[train] --momentum: expected an optimizer that has one (--optimizer sgd or rmsprop)");
    }
  }
  if (!options.nesterov) return;
  if constexpr (requires { kind.nesterov; }) {
    kind.nesterov = true;
  } else {
    throw UserError("[train] --nesterov: expected the optimizer that knows it (--optimizer sgd --momentum R)");
  }
}

Optimizer optimizer_of(const LearningSource& source, const Options& options) {
  Optimizer optimizer = options.optimizer.empty() ? source.task.optimizer : find_optimizer(options.optimizer);
  std::visit(
      [&](auto& kind) {
        if (is_given(options.learning_rate, "learning-rate")) kind.learning_rate = options.learning_rate;
        if (is_given(options.weight_decay, "weight-decay")) kind.weight_decay = options.weight_decay;
        set_momentum(kind, options);
      },
      optimizer);
  return optimizer;
}

UpdateOptions update_of(const LearningSource& source, const Options& options) {
  UpdateOptions update = source.task.update;
  if (is_given(options.clip_norm, "clip-norm")) update.clip_norm = options.clip_norm;
  if (is_given(options.clip_value, "clip-value")) update.clip_value = options.clip_value;
  if (options.accumulate != 0) update.accumulate = options.accumulate;
  if (is_given(options.average, "ema")) update.average = options.average;
  // A weight belongs to the first group that it fits.
  if (!options.no_decay.empty()) {
    update.groups.insert(update.groups.begin(), WeightGroup{.weights = options.no_decay, .weight_decay = 0});
  }
  if (is_given(options.loss_scale, "loss-scale") && options.loss_scale > 0)
    update.loss_scale = LossScale{.initial = options.loss_scale};
  return update;
}

TrainingGraphs graphs_of(LearningSource& source, const DataLoader& loader, const Options& options) {
  const UpdateOptions update = update_of(source, options);
  const Optimizer optimizer = optimizer_of(source, options);
  if (source.model) {
    source.training.optimizer = optimizer;
    source.training.update = update;
    source.training.trainable.weights = options.weights;
    return training_graphs(source.model->graph, loader, source.training);
  }
  if (options.weights != "all") {
    source.task.module->freeze("*");
    source.task.module->freeze(options.weights, true);
  }
  return training_graphs(*source.task.module, loader, source.task.loss, optimizer, update);
}

std::string duration(double seconds) {
  const int64_t whole = std::llround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

std::string progress_text(const TrainingProgress& now) {
  std::string text = fmt::format("epoch {}/{}", now.epoch, now.epochs);
  for (const auto* name : {"loss", "accuracy"}) {
    if (const auto found = now.metrics.find(name); found != now.metrics.end()) {
      text += fmt::format("  {} {}", name, metric_text(found->second));
    }
  }
  return text + fmt::format("  {:.0f} samples/s  {} left ", now.samples_per_second, duration(now.seconds_left));
}

// Which epoch is the best: by the accuracy, where the loss has one.
std::string watched_metric(const Graph& evaluation) {
  for (size_t k = 0; k < evaluation.outputs().size(); ++k) {
    if (evaluation.output_name(k) == "accuracy") return "accuracy";
  }
  return "loss";
}

TrainerOptions trainer_options(const LearningSource& source, const Options& options, const DataLoader& loader,
                               const Graph& evaluation) {
  const int64_t epochs = options.epochs > 0 ? options.epochs : source.task.epochs;
  int64_t steps = epochs * loader.batches_per_epoch();
  if (options.steps > 0) steps = std::min(steps, options.steps);
  TrainerOptions trainer{.epochs = epochs, .max_steps = options.steps};
  const Optimizer optimizer = optimizer_of(source, options);
  double rate = 0;
  std::visit([&](const auto& kind) { rate = kind.learning_rate; }, optimizer);
  const std::string schedule = options.schedule.empty() ? source.task.schedule : options.schedule;
  trainer.schedule = schedule_of(schedule, rate, steps, options.warm_up);
  if (!trainer.schedule) trainer.plateau = nn::Plateau(rate, 0.1, 3);
  trainer.patience = options.patience;
  trainer.watched = watched_metric(evaluation);
  trainer.checkpoints = options.checkpoint;
  trainer.checkpoint_every = options.checkpoint_every;
  trainer.resume = options.resume;
  // What checkpoints had before they had settings.
  trainer.identity = fmt::format("{} seed {} batch {} steps {}", options.learning.what, options.learning.seed,
                                 source.task.batch, steps);
  if (!options.checkpoint.empty()) {
    trainer.settings = training_settings(options.learning, source,
                                         {.optimizer = optimizer,
                                          .update = update_of(source, options),
                                          .schedule = schedule,
                                          .warm_up = options.warm_up,
                                          .steps = steps,
                                          .batches_per_epoch = loader.batches_per_epoch(),
                                          .weights = options.weights,
                                          .from = options.from});
  }
  trainer.attachments = tokens_to_keep(source.task.tokenizer);
  trainer.metrics_file = options.metrics;
  trainer.log_folder = options.log_dir;
  trainer.compile = learning_compile_options(options.learning);
  trainer.should_stop = InterruptScope::was_interrupted;
  return trainer;
}

void save(LearningSource& source, const StateStore& of_run, const std::string& path) {
  if (path.empty()) return;
  const StateStore states = with_averages(of_run);
  if (source.task.module) {
    source.task.module->read_from(states);
    const std::map<std::string, std::string> tokens = tokens_to_keep(source.task.tokenizer);
    if (path.ends_with(".safetensors")) return source.task.module->save(path, tokens);
    return save_onnx(inference_graph(source.task, states), path, {.metadata = tokens});
  }
  TrainableOptions as_trained = source.training.trainable;
  as_trained.batch_statistics = false;
  Graph model = make_trainable(source.model->graph, as_trained).graph;
  states.copy_to(model);
  model.freeze();
  save_onnx(model, path, {.doc = source.model->doc, .metadata = source.model->metadata});
}

Json number_of(const Metrics& metrics, const std::string& name) {
  const auto found = metrics.find(name);
  return found == metrics.end() ? Json() : Json(found->second);
}

// Accuracy is that of what was held out: the training one is of a model in motion.
Json epoch_json(const EpochResult& epoch) {
  return Json::object({{"epoch", epoch.epoch},
                       {"step", epoch.step},
                       {"loss", number_of(epoch.training, "loss")},
                       {"accuracy", number_of(epoch.held_out, "accuracy")},
                       {"held_out_loss", number_of(epoch.held_out, "loss")},
                       {"training_accuracy", number_of(epoch.training, "accuracy")},
                       {"learning_rate", epoch.learning_rate},
                       {"seconds", epoch.seconds},
                       {"samples_per_second", epoch.samples_per_second}});
}

void report(Session& session, const LearningSource& source, const Options& options, const TrainingResult& result,
            ObservedRun& observed) {
  Json epochs = Json::array();
  Table table({{"epoch", true},
               {"loss", true},
               {"held out", true},
               {"accuracy", true},
               {"seconds", true},
               {"samples/s", true}});
  const auto text = [](const Metrics& metrics, const char* name) {
    const auto found = metrics.find(name);
    return found == metrics.end() ? std::string() : metric_text(found->second);
  };
  for (const EpochResult& epoch : result.epochs) {
    epochs.push(epoch_json(epoch));
    table.add({std::to_string(epoch.epoch), text(epoch.training, "loss"), text(epoch.held_out, "loss"),
               text(epoch.held_out, "accuracy"), fmt::format("{:.1f}", epoch.seconds),
               fmt::format("{:.0f}", epoch.samples_per_second)});
  }
  const Metrics last = result.epochs.empty() ? Metrics() : result.epochs.back().held_out;
  std::string tail;
  if (result.resumed_from >= 0) tail += fmt::format("went on from step {}\n", result.resumed_from);
  if (result.stopped_early) tail += "stopped early: it has not got better\n";
  if (result.was_interrupted) {
    tail += fmt::format("interrupted at step {}{}\n", result.steps,
                        options.checkpoint.empty() ? "" : "; --resume goes on from there");
  }
  if (!options.output.empty()) tail += options.output + "\n";
  Json::Object document{
      {"task", source.task.name},
      {"epochs", std::move(epochs)},
      {"final", Json::object({{"loss", number_of(last, "loss")}, {"accuracy", number_of(last, "accuracy")}})},
      {"steps", result.steps},
      {"resumed_from", count_json(result.resumed_from)},
      {"stopped_early", result.stopped_early},
      {"interrupted", result.was_interrupted},
      {"file", options.output.empty() ? Json() : Json(options.output)}};
  if (!options.observe.watch.empty()) document.emplace_back("watched", observed.watched());
  session.print(std::move(document), table.to_string(session.stdout_escapes()) + tail);
}

int run(Session& session, Options& options) {
  check_counts(options);
  check_observe_options(options.observe);
  check_paths(options);
  options.learning.kept_tokens = tokens_of_file(options.from);
  LearningSource source = open_learning(session, options.learning);
  check_output(options.output, source.task.module != nullptr);
  begin_from(source, options.from);
  DataLoader loader = training_loader(source, options.learning);
  TrainingGraphs graphs = graphs_of(source, loader, options);
  TrainerOptions how = trainer_options(source, options, loader, graphs.evaluation);
  std::optional<ObservedRun> observer;
  how.on_progress = [&](const TrainingProgress& now) {
    observer->warn_where_none_fits();
    session.progress(progress_text(now), static_cast<double>(now.step) / static_cast<double>(now.steps));
  };
  const InterruptScope interruptible;
  std::vector<std::string> names = watchable_names(graphs.step);
  Trainer trainer(std::move(graphs), std::move(loader), held_out_loader(source), std::move(how));
  ObservedRun& observed = observer.emplace(session, options.observe, std::move(names));
  observed.describe(options.learning.what, "cpu", trainer.threads());
  TrainingResult result;
  try {
    result = trainer.run();
  } catch (const UserError&) {
    if (!observed.was_stopped()) throw;
    std::cerr << "stopped\n";
    return static_cast<int>(ExitCode::done);
  }
  observed.finish();
  session.end_progress();
  for (const std::string& warning : result.warnings) session.warn(warning);
  save(source, trainer.states(), options.output);
  report(session, source, options, result, observed);
  return static_cast<int>(result.was_interrupted ? ExitCode::interrupted : ExitCode::done);
}

// How much is learned, and from what.
std::vector<Option> extent_options(Options& options) {
  return {
      {.names = "--epochs",
       .value_name = "N",
       .doc = "Times that all samples are seen; the task's own when not given, 3 for MODEL.onnx.",
       .target = &options.epochs},
      {.names = "--steps",
       .value_name = "N",
       .doc = "Stop after so many steps, those of a resumed run included.",
       .target = &options.steps},
      {.names = "--weights",
       .value_name = "PATTERN",
       .doc = "Names of the weights that learn, with * and ?; all when not given.",
       .target = &options.weights},
      from_option(options.from),
      tokens_option(options.learning.tokens),
  };
}

// How weights are updated.
std::vector<Option> update_options(Options& options) {
  return {
      {.names = "--optimizer",
       .value_name = "NAME",
       .doc = fmt::format("One of {}; adamw when not given. ", join(optimizer_names(), ", ")) +
              "sparse_adam is PyTorch's SparseAdam for tables that are read by rows (embeddings), of which it updates "
              "those that a step has "
              "read, and Adam for other weights.",
       .target = &options.optimizer,
       .kind = ValueKind::choice,
       .choices = optimizer_names()},
      {.names = "--learning-rate,--lr",
       .value_name = "R",
       .doc = "The highest of the schedule; the task's own when not given.",
       .target = &options.learning_rate},
      {.names = "--weight-decay",
       .value_name = "R",
       .doc = "The optimiser's own when not given.",
       .target = &options.weight_decay},
      {.names = "--momentum", .value_name = "R", .doc = "Of sgd and rmsprop.", .target = &options.momentum},
      {.names = "--nesterov", .doc = "sgd by Nesterov's momentum.", .target = &options.nesterov},
      {.names = "--schedule",
       .value_name = "NAME",
       .doc =
           "Of the learning rate: constant, step, cosine, one_cycle, or plateau, which falls to a tenth when what was "
           "held out has not got better for 3 epochs; one_cycle when not given.",
       .target = &options.schedule,
       .kind = ValueKind::choice,
       .choices = {"constant", "step", "cosine", "one_cycle", kPlateau}},
      {.names = "--warm-up",
       .value_name = "N",
       .doc = "Of schedules constant, step and cosine: steps in which the learning rate rises to theirs.",
       .target = &options.warm_up},
      {.names = "--clip-norm",
       .value_name = "R",
       .doc = "Gradients together are made at most this long.",
       .target = &options.clip_norm},
      {.names = "--clip-value",
       .value_name = "R",
       .doc = "Each element of a gradient is brought into -R to R, before --clip-norm.",
       .target = &options.clip_value},
      {.names = "--accumulate",
       .value_name = "N",
       .doc = "Weights are updated after every N steps, by the mean of their gradients.",
       .target = &options.accumulate},
      {.names = "--ema",
       .value_name = "R",
       .doc = "Keep an exponential average of the weights, R of what it was and 1 - R of the weights after each "
              "update; evaluate and save that.",
       .target = &options.average},
      {.names = "--no-decay",
       .value_name = "PATTERN",
       .doc = "Names of the weights without weight decay, with * and ?: '*bias,*norm*'.",
       .target = &options.no_decay},
      {.names = "--dropout",
       .value_name = "R",
       .doc = "Share of what dropout sets to 0; the task's own when not given.",
       .target = &options.learning.dropout},
      {.names = "--loss-scale",
       .value_name = "R",
       .doc =
           "The loss is multiplied by R while gradients are formed, by half as much after a step that overflowed, by "
           "twice as much after 2000 that did not; for bf16. 0: not at all.",
       .target = &options.loss_scale},
  };
}

// When a run ends, and what is kept of it.
std::vector<Option> record_options(Options& options) {
  return {
      {.names = "--patience",
       .value_name = "N",
       .doc = "Stop when what was held out has not got better for N epochs.",
       .target = &options.patience},
      {.names = "--checkpoint",
       .value_name = "DIR",
       .doc =
           "Keep what is needed to go on in this folder, after each epoch and on Ctrl-C: the last three and the best.",
       .target = &options.checkpoint,
       .kind = ValueKind::directory},
      {.names = "--checkpoint-every",
       .value_name = "N",
       .doc = "And after every N steps.",
       .target = &options.checkpoint_every},
      {.names = "--resume",
       .doc = "Go on from the newest checkpoint, bit for bit as if the run had not been stopped.",
       .target = &options.resume},
      {.names = "--metrics",
       .value_name = "FILE.jsonl",
       .doc = "A line for each step with step, epoch, loss and the other metrics.",
       .target = &options.metrics,
       .kind = ValueKind::file},
      {.names = "--log-dir",
       .value_name = "DIR",
       .doc = "Event files for TensorBoard, and the learning curves as curves.svg and curves.html.",
       .target = &options.log_dir,
       .kind = ValueKind::directory},
      {.names = "-o,--output",
       .value_name = "FILE",
       .doc = "What was learned: .onnx, or of a task .safetensors with the names that PyTorch would use.",
       .target = &options.output,
       .kind = ValueKind::file},
  };
}

}  // namespace

Command train_command() {
  auto options = std::make_shared<Options>();
  std::vector<Option> table = learning_option_table(options->learning);
  for (std::vector<Option> part :
       {augment_option_table(options->learning.images), extent_options(*options), update_options(*options),
        record_options(*options), observe_option_table(options->observe)}) {
    for (Option& option : part) table.push_back(std::move(option));
  }
  std::string details = "Tasks:";
  for (const TaskInfo& task : training_tasks()) {
    details += fmt::format(" {} ({}; --data: {}).", task.name, task.doc, task.data);
  }
  return {
      .name = "train",
      .doc = "train a model on data",
      .details = details +
                 " A model that was imported learns from any set whose samples fit its one input; it is then "
                 "the trained model that -o writes.",
      .examples = {{"autograph train fashion --data /usr/share/datasets/fashion-mnist -o fashion.onnx",
                    "With Debian's package dataset-fashion-mnist."},
                   {"autograph train mnist --data DIR --checkpoint run1 --resume", "Goes on where it was stopped."},
                   {"autograph train text --data FILE --tokens bpe:2000 -o text.onnx",
                    "A language model of byte pairs, which keeps its tokens."},
                   {"autograph train model.onnx --data images/ --weights 'fc.*' -o tuned.onnx",
                    "Fine-tunes the last layer on a folder of images for each class."}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli
