// What decides about the numbers of a training run, as its checkpoints name it: by the options of the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "autograph/checkpoint.h"
#include "autograph/train.h"
#include "autograph/trainer.h"
#include "cli/sources/learning_source.h"

namespace autograph::cli {

/// What train makes of its options.
struct TrainingChoices {
  Optimizer optimizer;
  UpdateOptions update;
  std::string schedule;
  int64_t warm_up = 0;  ///< Steps.
  int64_t steps = 0;    ///< Of the whole run.
  int64_t batches_per_epoch = 1;
  std::string weights;  ///< Pattern of those that learn.
  std::string from;     ///< File of the weights that it begins with; or "".
};

/// As TrainerOptions::settings. Reads the files of weights, whose contents count and not their place.
std::vector<RunSetting> training_settings(const LearningOptions& options, const LearningSource& source,
                                          const TrainingChoices& choices);

/// open_learning() for what has been trained: seed and loss, where they are not given, are those of the checkpoint's
/// run, so that the same samples are held out. Throws UserError where what is given is another than the run's; `from`,
/// a file or "", must be the run's where some weights did not learn.
LearningSource open_trained(const Session& session, const LearningOptions& options, const std::string& from,
                            const std::optional<Checkpoint>& found);

}  // namespace autograph::cli
