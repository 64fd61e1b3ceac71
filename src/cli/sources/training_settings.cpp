#include "cli/sources/training_settings.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <variant>

#include "autograph/error.h"
#include "base/check.h"
#include "base/hash_stream.h"
#include "base/join.h"
#include "base/printable.h"
#include "base/text/read_number.h"
#include "cli/sources/token_options.h"

namespace autograph::cli {
namespace {

constexpr const char* kNone = "none";
constexpr const char* kFromRun = "not given, it is the run's";

// Without its folder: a run may go on where its files lie elsewhere.
std::string file_name(const std::string& path) {
  const std::filesystem::path whole = std::filesystem::path(path).lexically_normal();
  const std::filesystem::path name = whole.has_filename() ? whole.filename() : whole.parent_path().filename();
  return printable(name.string());
}

// Weights of one model have the same names and sizes in every file: only their contents tell them apart.
std::string file_setting(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  HashStream hash;
  std::array<char, 1 << 16> piece;
  while (file.read(piece.data(), piece.size()) || file.gcount() > 0) {
    hash.add({piece.data(), static_cast<size_t>(file.gcount())});
  }
  AG_CHECK_USER(file.eof(), IoError, "[cli] file: cannot read '{}'", path);
  return fmt::format("{} (hash {})", file_name(path), to_string(hash.finish()).substr(0, 16));
}

const char* yes_or_no(bool value) { return value ? "yes" : "no"; }

// Without learning rate and weight decay, which are options of their own.
std::string text_of(const Sgd& it) {
  return fmt::format("sgd (momentum {}, dampening {}, nesterov {})", it.momentum, it.dampening, yes_or_no(it.nesterov));
}
std::string text_of(const Adam& it) {
  if (it.lazy) return fmt::format("sparse_adam (beta1 {}, beta2 {}, epsilon {})", it.beta1, it.beta2, it.epsilon);
  return fmt::format("adam (beta1 {}, beta2 {}, epsilon {}, amsgrad {})", it.beta1, it.beta2, it.epsilon,
                     yes_or_no(it.amsgrad));
}
std::string text_of(const AdamW& it) {
  return fmt::format("adamw (beta1 {}, beta2 {}, epsilon {}, amsgrad {})", it.beta1, it.beta2, it.epsilon,
                     yes_or_no(it.amsgrad));
}
std::string text_of(const RmsProp& it) {
  return fmt::format("rmsprop (alpha {}, epsilon {}, momentum {}, centered {})", it.alpha, it.epsilon, it.momentum,
                     yes_or_no(it.centered));
}
std::string text_of(const Adagrad& it) {
  return fmt::format("adagrad (learning_rate_decay {}, initial_accumulator {}, epsilon {})", it.learning_rate_decay,
                     it.initial_accumulator, it.epsilon);
}
std::string text_of(const Adadelta& it) { return fmt::format("adadelta (rho {}, epsilon {})", it.rho, it.epsilon); }
std::string text_of(const Adamax& it) {
  return fmt::format("adamax (beta1 {}, beta2 {}, epsilon {})", it.beta1, it.beta2, it.epsilon);
}
std::string text_of(const NAdam& it) {
  return fmt::format("nadam (beta1 {}, beta2 {}, epsilon {}, momentum_decay {}, decoupled_weight_decay {})", it.beta1,
                     it.beta2, it.epsilon, it.momentum_decay, yes_or_no(it.decoupled_weight_decay));
}
std::string text_of(const RAdam& it) {
  return fmt::format("radam (beta1 {}, beta2 {}, epsilon {}, decoupled_weight_decay {})", it.beta1, it.beta2,
                     it.epsilon, yes_or_no(it.decoupled_weight_decay));
}
std::string text_of(const Lion& it) { return fmt::format("lion (beta1 {}, beta2 {})", it.beta1, it.beta2); }

std::string text_of(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : kNone; }

std::string text_of(const std::optional<LossScale>& scale) {
  if (!scale) return kNone;
  if (!scale->dynamic) return fmt::format("{}", scale->initial);
  return fmt::format("{} (doubled after {} steps)", scale->initial, scale->growth_interval);
}

std::string text_of(const std::vector<WeightGroup>& groups) {
  std::vector<std::string> texts;
  for (const WeightGroup& group : groups) {
    texts.push_back(fmt::format("{} (learning rate times {}, weight decay {})", group.weights, group.rate_factor,
                                group.weight_decay ? text_of(group.weight_decay) : "as all"));
  }
  return texts.empty() ? kNone : join(texts, ", ");
}

void add_optimizer(std::vector<RunSetting>& settings, const TrainingChoices& choices) {
  std::visit(
      [&](const auto& kind) {
        settings.push_back({"--optimizer", text_of(kind)});
        settings.push_back({"--learning-rate", fmt::format("{}", kind.learning_rate)});
        settings.push_back({"--weight-decay", fmt::format("{}", kind.weight_decay)});
      },
      choices.optimizer);
  settings.push_back({"--clip-norm", text_of(choices.update.clip_norm)});
  settings.push_back({"--clip-value", text_of(choices.update.clip_value)});
  settings.push_back({"--accumulate", fmt::format("{}", choices.update.accumulate)});
  settings.push_back({"--ema", text_of(choices.update.average)});
  settings.push_back({"--loss-scale", text_of(choices.update.loss_scale)});
  settings.push_back({.name = "weight groups",
                      .value = printable(text_of(choices.update.groups)),
                      .advice = "--no-decay names weights without weight decay"});
}

// By the steps of the whole run, which --epochs, --steps and the samples decide together.
RunSetting length_setting(const TrainingChoices& choices) {
  const auto steps = static_cast<double>(choices.steps);
  const double epochs = steps / static_cast<double>(std::max<int64_t>(choices.batches_per_epoch, 1));
  return {.name = "--epochs",
          .value = fmt::format("{:.4g} ({} steps)", epochs, choices.steps),
          .advice = fmt::format("the schedule {} spans all epochs and steps, so that more of them change the rate from "
                                "the first step on; runs with --schedule constant or plateau can be made longer",
                                choices.schedule)};
}

// Where the rate does not depend on the length, a longer run begins as the shorter one did.
void add_schedule(std::vector<RunSetting>& settings, const TrainingChoices& choices) {
  const bool spans_the_run = choices.schedule != "constant" && choices.schedule != "plateau";
  settings.push_back({"--schedule", choices.schedule});
  settings.push_back({"--warm-up", fmt::format("{}", choices.warm_up)});
  if (spans_the_run) settings.push_back(length_setting(choices));
}

// "none", or what `text` says of the transform of this kind.
template <class Kind, class Text>
RunSetting transform_setting(const char* name, const std::vector<Transform>& transforms, const Text& text) {
  for (const Transform& transform : transforms) {
    if (const auto* kind = std::get_if<Kind>(&transform)) return {name, text(*kind)};
  }
  return {name, kNone};
}

RunSetting normalize_setting(const LearningSource& source) {
  return transform_setting<Normalize>("--normalize", source.preparation,
                                      [](const Normalize& normalize) { return normalize_text(normalize); });
}

RunSetting size_setting(const LearningSource& source) {
  return {"--size", source.size ? size_text(*source.size) : kNone};
}

void add_images(std::vector<RunSetting>& settings, const LearningSource& source) {
  const auto number = [](auto value) { return fmt::format("{}", value); };
  const std::vector<Transform>& all = source.task.transforms;
  if (source.model) settings.push_back(size_setting(source));
  if (source.model) settings.push_back(normalize_setting(source));
  settings.push_back(transform_setting<RandomCrop>("--crop", all, [&](const auto& it) { return number(it.padding); }));
  settings.push_back(
      transform_setting<HorizontalFlip>("--flip", all, [&](const auto& it) { return number(it.probability); }));
  settings.push_back(transform_setting<Mixup>("--mixup", all, [&](const auto& it) { return number(it.alpha); }));
}

RunSetting task_setting(const LearningOptions& options, const LearningSource& source) {
  return {"TASK", source.model ? file_setting(options.what) : source.task.name};
}

using Settings = std::map<std::string, std::string>;

// Of the checkpoint's run; `otherwise` where it had none.
std::string setting_of(const Settings& run, const std::string& name, const std::string& otherwise) {
  const auto it = run.find(name);
  return it == run.end() ? otherwise : it->second;
}

void check_setting(const Settings& run, const RunSetting& now) {
  const std::string before = setting_of(run, now.name, now.value);
  AG_CHECK_USER(before == now.value, UserError,
                "[cli] {}: expected {}, as the run that wrote the checkpoint had it, got {} ({})", now.name, before,
                now.value, now.advice);
}

void take(std::string& option, const Settings& run, const std::string& name) {
  const std::string of_run = setting_of(run, name, kNone);
  if (option.empty() && of_run != kNone) option = of_run;
}

// Samples of the model that the run trained are as those were that it has learned from.
void take_images(LearningOptions& options, const Settings& run) {
  if (!options.what.ends_with(".onnx")) return;
  take(options.images.size, run, "--size");
  take(options.images.normalize, run, "--normalize");
}

void check_from_run(const Settings& run, RunSetting now) {
  now.advice = kFromRun;
  check_setting(run, now);
}

}  // namespace

std::vector<RunSetting> training_settings(const LearningOptions& options, const LearningSource& source,
                                          const TrainingChoices& choices) {
  std::vector<RunSetting> settings;
  settings.push_back(task_setting(options, source));
  settings.push_back({"--data", file_name(options.data)});
  settings.push_back({"samples", fmt::format("{}", source.task.training->size())});
  settings.push_back({"held-out samples", fmt::format("{}", source.task.held_out->size())});
  settings.push_back({"--seed", fmt::format("{}", options.seed)});
  settings.push_back({"--batch", fmt::format("{}", source.task.batch)});
  settings.push_back({"--precision", options.precision});
  if (source.model) settings.push_back({"--loss", source.training.loss});
  if (!source.model) settings.push_back({"--dropout", fmt::format("{}", source.task.dropout)});
  if (source.task.tokenizer) settings.push_back({"--tokens", tokens_text(*source.task.tokenizer)});
  add_images(settings, source);
  settings.push_back({"--weights", printable(choices.weights)});
  settings.push_back({"--from", choices.from.empty() ? kNone : file_setting(choices.from)});
  add_optimizer(settings, choices);
  add_schedule(settings, choices);
  return settings;
}

LearningSource open_trained(const Session& session, const LearningOptions& options, const std::string& from,
                            const std::optional<Checkpoint>& found) {
  const Settings run = found ? run_settings(*found) : Settings();
  LearningOptions as_trained = options;
  if (!session.is_given("seed")) {
    as_trained.seed = read_number<int64_t>(setting_of(run, "--seed", "0")).value_or(as_trained.seed);
  }
  if (options.loss.empty()) as_trained.loss = setting_of(run, "--loss", "");
  take_images(as_trained, run);
  as_trained.kept_tokens = found ? tokens_kept(run_attachments(*found)) : tokens_of_file(from);
  LearningSource source = open_learning(session, as_trained);
  RunSetting task = task_setting(options, source);
  task.advice = "weights of one task say nothing about another";
  check_setting(run, task);
  // No seed decides about what is held out of a text; predict draws from it how the text goes on.
  if (!source.task.tokenizer) {
    check_setting(run,
                  {"--seed", fmt::format("{}", as_trained.seed),
                   "another holds out other samples, most of which it has learned from; not given, it is the run's"});
  }
  if (source.model) {
    check_from_run(run, {"--loss", source.training.loss});
    check_from_run(run, size_setting(source));
    check_from_run(run, normalize_setting(source));
  }
  if (!from.empty() || setting_of(run, "--weights", "all") != "all") {
    check_setting(run, {"--from", from.empty() ? kNone : file_setting(from), "what did not learn is in that file"});
  }
  return source;
}

}  // namespace autograph::cli
