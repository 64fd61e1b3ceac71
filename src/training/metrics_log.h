// Metrics as lines of JSON, one for each step.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace autograph {

/// The file of a run. Numbers are written so that they read back to the same bits.
class MetricsLog {
 public:
  /// Appends to what `path` has of steps up to `step`; what is behind is written again by the run that goes on there. A
  /// new file when `step` is 0. Throws IoError.
  MetricsLog(std::string path, int64_t step);
  /// {"step":7,"epoch":1,NAME:NUMBER...}; in the file after flush().
  void add(int64_t step, int64_t epoch, const std::vector<std::pair<std::string, double>>& metrics);
  void flush();

 private:
  std::string path_;
  std::ofstream file_;
};

}  // namespace autograph
