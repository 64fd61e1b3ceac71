// Everything that a run writes for people besides its progress: metrics as lines of JSON, event files for TensorBoard,
// and learning curves as a picture and as a page.
#pragma once

#include <optional>
#include <string>

#include "training/epoch_history.h"
#include "training/event_file.h"
#include "training/metrics_log.h"

namespace autograph {

/// The files of TrainerOptions::metrics_file and log_folder, whichever are wanted.
class RunLog {
 public:
  /// For a run that goes on behind `history`. Throws IoError where a file cannot be written.
  RunLog(const TrainerOptions& options, const EpochHistory& history);
  /// Draws the epochs that are there already.
  void restore(const EpochHistory& history);
  /// One step, of which `metrics` are.
  void step(const EpochHistory& history, const Metrics& metrics, double learning_rate);
  /// One epoch; draws the curves again.
  void epoch(const EpochResult& result);
  void flush();
  /// Of a run that has ended: the page of its curves is not read again from here on.
  void end();

 private:
  void draw(bool goes_on) const;
  std::string log_folder_;  // "": none
  std::optional<MetricsLog> metrics_;
  std::optional<EventFile> events_;
  std::vector<EpochResult> epochs_;
};

}  // namespace autograph
