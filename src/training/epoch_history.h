// What a run has behind it: epochs that are over, and sums of the one that is not. Part of every checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autograph/trainer.h"

namespace autograph {

/// The numbers of a run; times are kept, too, but are those of the clock.
struct EpochHistory {
  std::vector<EpochResult> epochs;
  int64_t step = 0;     ///< Steps done.
  Metrics sums = {};    ///< Of this epoch, each times its samples.
  int64_t samples = 0;  ///< Of this epoch.
  double seconds = 0;   ///< Of this epoch.

  /// Takes in a step.
  void add(const Metrics& metrics, int64_t count);
  /// Means of this epoch.
  Metrics means() const;
  /// Closes this epoch.
  void end_epoch(Metrics held_out, double learning_rate);
  /// Epochs since the best held-out metric of that name (without one: the training metric); 0 when the last is it.
  int64_t since_best(const std::string& metric) const;

  /// As a JSON document, in which numbers keep all bits.
  std::string to_json(const TrainerOptions& options) const;
  /// Reads it back; FormatError where it is none, UserError when it is of a run with other options.
  static EpochHistory from_json(const std::string& text, const TrainerOptions& options);
};

}  // namespace autograph
