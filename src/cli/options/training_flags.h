// Flags of verbs that train a model instead of running it.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/train.h"
#include "cli/sources/model_source.h"

namespace autograph::cli {

/// What a number is that was not given.
inline constexpr double kNotGiven = -std::numeric_limits<double>::infinity();

/// Was the number given? Throws UserError where it was and is not 0 or more.
bool is_given(double number, std::string_view flag);

/// --train, --loss, --weights, --optimizer.
struct TrainingFlags {
  bool train = false;
  std::string loss = "cross_entropy";
  std::string weights = "all";
  std::string optimizer = "sgd";
  double learning_rate = kNotGiven;  ///< The optimiser's own when not given.
};

/// These as an option table.
std::vector<Option> training_option_table(TrainingFlags& flags);

/// With --train: makes the model its training step, with numbers for all extents. Throws UserError where it is a saved
/// plan, or where one of the other flags is given without --train; what training_graph() throws.
void make_training_step(LoadedModel& loaded, const TrainingFlags& flags, std::string_view verb);

}  // namespace autograph::cli
