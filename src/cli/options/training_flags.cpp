#include "cli/options/training_flags.h"

#include <cmath>

#include "base/check.h"
#include "base/join.h"
#include "cli/options/loss_option.h"

namespace autograph::cli {

bool is_given(double number, std::string_view flag) {
  if (number == kNotGiven) return false;
  AG_CHECK_USER(number >= 0 && std::isfinite(number), UserError,
                "[cli] --{}: expected a finite number of 0 or more, got {}", flag, number);
  return true;
}

namespace {

// Without --train they would be read by nobody.
void refuse_without_train(const TrainingFlags& flags) {
  const TrainingFlags usual;
  const char* given = flags.loss != usual.loss                     ? "loss"
                      : flags.weights != usual.weights             ? "weights"
                      : flags.optimizer != usual.optimizer         ? "optimizer"
                      : flags.learning_rate != usual.learning_rate ? "learning-rate"
                                                                   : nullptr;
  AG_CHECK_USER(!given, UserError, "[cli] --{}: expected --train beside it, got none", given);
}

}  // namespace

std::vector<Option> training_option_table(TrainingFlags& flags) {
  return {{.names = "--train",
           .doc = "A training step: forward, backward and the update of all weights, with batch statistics.",
           .target = &flags.train},
          loss_option(flags.loss, "With --train: ", "cross_entropy when not given."),
          {.names = "--weights",
           .value_name = "PATTERN",
           .doc = "With --train: names of the weights that learn, with * and ?; all when not given.",
           .target = &flags.weights},
          {.names = "--optimizer",
           .value_name = "NAME",
           .doc = fmt::format("With --train: one of {} (of tables the rows that were read); sgd when not given.",
                              join(optimizer_names(), ", ")),
           .target = &flags.optimizer},
          {.names = "--learning-rate",
           .value_name = "R",
           .doc = "With --train; what the optimiser has in PyTorch when not given.",
           .target = &flags.learning_rate}};
}

void make_training_step(LoadedModel& loaded, const TrainingFlags& flags, std::string_view verb) {
  if (!flags.train) return refuse_without_train(flags);
  refuse_plan(loaded, verb);
  TrainingOptions options;
  options.loss = flags.loss;
  options.trainable.weights = flags.weights;
  options.optimizer = find_optimizer(flags.optimizer);
  if (is_given(flags.learning_rate, "learning-rate")) {
    std::visit([&](auto& kind) { kind.learning_rate = flags.learning_rate; }, options.optimizer);
  }
  bind_extents(loaded);
  loaded.model.graph = training_graph(loaded.model.graph, options);
}

}  // namespace autograph::cli
