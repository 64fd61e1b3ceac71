// Flags of verbs that train a model instead of running it.
#pragma once

#include <string>
#include <vector>

#include "autograph/train.h"
#include "cli/sources/model_source.h"

namespace autograph::cli {

/// --train, --loss, --weights, --optimizer.
struct TrainingFlags {
  bool train = false;
  std::string loss = "cross_entropy";
  std::string weights = "all";
  std::string optimizer = "sgd";
  double learning_rate = -1;  ///< Below 0: the optimiser's own.
};

/// These as an option table.
std::vector<Option> training_option_table(TrainingFlags& flags);

/// With --train: makes the model its training step, with numbers for all extents. Throws UserError where it is a saved
/// plan, what training_graph() throws.
void make_training_step(LoadedModel& loaded, const TrainingFlags& flags, std::string_view verb);

}  // namespace autograph::cli
