#include "autograph/trainer.h"

#include <algorithm>
#include <cmath>

#include "autograph/checkpoint.h"
#include "autograph/error.h"
#include "base/check.h"
#include "base/stopwatch.h"
#include "training/epoch_history.h"
#include "training/program.h"
#include "training/run_log.h"

namespace autograph {
namespace {

// A run that begins anew among checkpoints of another would remove them one after the other, and leave the other's best
// as its own.
void check_folder(const TrainerOptions& options) {
  if (options.checkpoints.empty() || options.resume) return;
  const std::vector<std::string> there = Checkpoints(options.checkpoints).list();
  AG_CHECK_USER(there.empty(), UserError,
                "[train] checkpoints: expected a folder without any to begin anew, got {} in '{}', '{}' the newest "
                "(resume goes on from it: --resume; or give another folder)",
                there.size(), options.checkpoints, there.front());
}

void check_options(const TrainerOptions& options) {
  AG_CHECK_USER(options.epochs >= 1, ValueError, "[train] epochs: expected 1 or more, got {}", options.epochs);
  AG_CHECK_USER(options.max_steps >= 0 && options.checkpoint_every >= 0 && options.patience >= 0, ValueError,
                "[train] steps, checkpoint_every and patience: expected 0 or more, got {}, {} and {}",
                options.max_steps, options.checkpoint_every, options.patience);
  AG_CHECK_USER(!options.resume || !options.checkpoints.empty(), ValueError,
                "[train] resume: expected a folder with checkpoints");
  check_folder(options);
}

// With checkpoints: sums in the same order in every run, however busy the machine is.
TrainerOptions repeatable(TrainerOptions options) {
  if (!options.checkpoints.empty()) options.compile.expert.fixed_threads = true;
  return options;
}

// Those that are made ahead, and the one at work.
size_t bytes_of_batches(const DataLoader& loader) {
  size_t of_sample = 0;
  for (const Field& field : loader.fields()) {
    size_t bytes = element_size(field.dtype);
    for (const int64_t extent : field.dims) bytes *= static_cast<size_t>(extent);
    of_sample += bytes;
  }
  const LoaderOptions& options = loader.options();
  const int64_t ahead = options.threads == 0 ? 0 : options.prefetch;
  return of_sample * static_cast<size_t>(options.batch_size) * static_cast<size_t>(ahead + 1);
}

// A checkpoint with more states than the run has is of another optimiser or model. What it has less, restore() tells.
void check_states(const Checkpoint& checkpoint, const StateStore& states) {
  for (const auto& [name, tensor] : checkpoint.tensors) {
    AG_CHECK_USER(
        states.contains(name), UserError,
        "[train] resume: expected a checkpoint of the states that this run has, got '{}', too (it is of another "
        "optimiser or model: give those from before, or train anew with a folder that has no checkpoints)",
        name);
  }
}

CompileOptions sharing(CompileOptions options, const StateStore& states) {
  options.states = states;
  return options;
}

}  // namespace

class Trainer::Impl {
 public:
  Impl(TrainingGraphs graphs, DataLoader training, std::optional<DataLoader> held_out, TrainerOptions options)
      : options_((check_options(options), repeatable(std::move(options)))),
        training_(std::move(training)),
        held_out_(std::move(held_out)),
        step_program_(std::move(graphs.step), options_.compile),
        evaluation_(std::move(graphs.evaluation), sharing(options_.compile, step_program_.states())) {
    check_memory();
  }

  TrainingResult run() {
    open_checkpoints();
    if (options_.resume) resume();
    log_.emplace(options_, history_);
    log_->restore(history_);
    watch_ = Stopwatch();
    while (!is_done()) {
      if (const auto batch = training_.next()) {
        take_step(*batch);
        if (options_.should_stop && options_.should_stop()) {
          result_.was_interrupted = !is_done();
          break;
        }
      } else {
        end_epoch();
      }
    }
    // Inside an epoch: what is kept is the epoch as far as it has come.
    const bool is_inside = history_.samples > 0;
    if (is_inside) save();
    if (is_inside && !result_.was_interrupted) close_epoch();
    if (checkpoints_) checkpoints_->wait();
    checkpoints_.reset();  // the folder is free for other runs
    log_->end();
    result_.epochs = history_.epochs;
    result_.steps = history_.step;
    return result_;
  }

  Metrics evaluate(DataLoader& data) const { return evaluation_.means(data); }

  const StateStore& states() const { return step_program_.states(); }
  int threads() const { return step_program_.threads(); }

 private:
  void open_checkpoints() {
    if (options_.checkpoints.empty()) return;
    const bool is_larger = options_.watched == "accuracy";
    checkpoints_.emplace(options_.checkpoints,
                         CheckpointOptions{.better = is_larger ? BetterMetric::larger : BetterMetric::smaller});
  }

  // The plans were checked when they were made, each by itself: here is all that a run keeps at once.
  void check_memory() const {
    const size_t budget = options_.compile.memory_budget_bytes;
    if (budget == 0) return;
    const size_t activations = step_program_.arena_bytes() + evaluation_.arena_bytes();
    const size_t states = step_program_.states().size_bytes(), batches = bytes_of_batches(training_);
    const size_t needed = activations + states + batches;
    AG_CHECK_USER(needed <= budget, BudgetError,
                  "[train] memory: expected at most {} bytes, got {} (activations {}, weights and what the optimiser "
                  "remembers {}, batches {}; a smaller batch needs less)",
                  budget, needed, activations, states, batches);
  }

  int64_t total_steps() const {
    const int64_t of_epochs = options_.epochs * training_.batches_per_epoch();
    return options_.max_steps > 0 ? std::min(options_.max_steps, of_epochs) : of_epochs;
  }

  bool is_done() const {
    const bool enough_steps = options_.max_steps > 0 && history_.step >= options_.max_steps;
    const bool enough_epochs = static_cast<int64_t>(history_.epochs.size()) >= options_.epochs;
    return enough_steps || enough_epochs || result_.stopped_early;
  }

  void take_step(const Batch& batch) {
    if (options_.schedule) nn::set_learning_rate(states(), options_.schedule(history_.step));
    const Metrics metrics = step_program_.run(batch);
    ++history_.step;
    ++steps_here_;
    history_.add(metrics, batch.size);
    const double seconds = watch_.ms() / 1000;
    history_.seconds += seconds - last_seconds_;
    last_seconds_ = seconds;
    log_->step(history_, metrics, learning_rate());
    const double loss = metrics.at("loss");
    if (!std::isfinite(loss)) {
      log_->end();
      throw Error(ExitCode::failed,
                  fmt::format("[train] loss: it is {} at step {} (a lower learning rate, or clip_norm, may help; "
                              "check_nan names the node that made the first{})",
                              std::isnan(loss) ? "NaN" : "infinite", history_.step,
                              checkpoints_ ? "; the last checkpoint is from before" : ""));
    }
    if (options_.on_progress) options_.on_progress(progress());
    const bool is_due = options_.checkpoint_every > 0 && history_.step % options_.checkpoint_every == 0;
    if (is_due && checkpoints_) save();
  }

  double learning_rate() const { return states().get("optimizer/learning_rate").to_f64().front(); }

  TrainingProgress progress() const {
    TrainingProgress now{.epoch = static_cast<int64_t>(history_.epochs.size()) + 1,
                         .epochs = options_.epochs,
                         .step = history_.step,
                         .steps = total_steps(),
                         .metrics = history_.means()};
    now.samples_per_second = history_.seconds > 0 ? static_cast<double>(history_.samples) / history_.seconds : 0;
    now.seconds_left = last_seconds_ / static_cast<double>(steps_here_) * static_cast<double>(now.steps - now.step);
    return now;
  }

  // Evaluates, and tells.
  void close_epoch() {
    Metrics held_out;
    if (held_out_) {
      held_out_->seek({});
      held_out = evaluate(*held_out_);
    }
    history_.end_epoch(std::move(held_out), learning_rate());
    log_->epoch(history_.epochs.back());
  }

  void end_epoch() {
    close_epoch();
    if (options_.plateau) nn::set_learning_rate(states(), rate_of_plateau());
    result_.stopped_early = options_.patience > 0 && history_.since_best(options_.watched) >= options_.patience;
    if (checkpoints_) save();
    last_seconds_ = watch_.ms() / 1000;  // evaluation and writing do not count as training
  }

  // From all epochs, so that a resumed run has the same.
  double rate_of_plateau() const {
    nn::Plateau plateau = *options_.plateau;
    for (const EpochResult& epoch : history_.epochs) {
      plateau.next(epoch.held_out.contains("loss") ? epoch.held_out.at("loss") : epoch.training.at("loss"));
    }
    return plateau.rate();
  }

  void save() {
    if (!checkpoints_) return;
    log_->flush();
    Checkpoint checkpoint{.step = history_.step, .data = training_.position(), .config = history_.to_json(options_)};
    if (!history_.epochs.empty()) {
      const Metrics& metrics = history_.epochs.back().held_out;
      if (const auto found = metrics.find(options_.watched); found != metrics.end()) checkpoint.metric = found->second;
    }
    checkpoint.capture(states());
    checkpoints_->save(std::move(checkpoint));
  }

  void resume() {
    const auto found = checkpoints_->load_latest();
    for (const DamagedCheckpoint& damaged : checkpoints_->damaged()) {
      result_.warnings.push_back(
          fmt::format("checkpoint '{}' is damaged and was skipped: {}", damaged.path, damaged.problem));
    }
    if (!found) return;
    history_ = EpochHistory::from_json(found->config, options_);
    history_.step = found->step;
    StateStore store = states();
    check_states(*found, store);
    found->restore(store);
    training_.seek(found->data);
    result_.resumed_from = found->step;
    result_.stopped_early = options_.patience > 0 && history_.since_best(options_.watched) >= options_.patience;
  }

  TrainerOptions options_;
  DataLoader training_;
  std::optional<DataLoader> held_out_;
  TrainingProgram step_program_;
  TrainingProgram evaluation_;
  std::optional<Checkpoints> checkpoints_;
  std::optional<RunLog> log_;
  EpochHistory history_;
  TrainingResult result_;
  Stopwatch watch_;
  double last_seconds_ = 0;
  int64_t steps_here_ = 0;
};

Metrics evaluate(const Graph& evaluation, const StateStore& states, DataLoader& data, const CompileOptions& options) {
  return TrainingProgram(evaluation, sharing(options, states)).means(data);
}

Trainer::Trainer(TrainingGraphs graphs, DataLoader training, std::optional<DataLoader> held_out, TrainerOptions options)
    : impl_(std::make_unique<Impl>(std::move(graphs), std::move(training), std::move(held_out), std::move(options))) {}

Trainer::~Trainer() = default;

TrainingResult Trainer::run() { return impl_->run(); }

Metrics Trainer::evaluate(DataLoader& data) const { return impl_->evaluate(data); }

const StateStore& Trainer::states() const { return impl_->states(); }

int Trainer::threads() const { return impl_->threads(); }

}  // namespace autograph
