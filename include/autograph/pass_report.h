// What passes tell of what they did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace autograph {

/// What one pass did to a graph, and how long it took.
struct PassReport {
  std::string name;  ///< As ExpertOptions::disabled_passes takes it.
  double ms = 0;
  bool changed = false;
  size_t nodes = 0;  ///< Of the graph behind it, those in nested graphs not counted.
  /// How many nodes of an op came, or went (less than 0), by name of the op; ops whose number stayed are left out.
  /// Constants of the graph are counted as "constant".
  std::vector<std::pair<std::string, int64_t>> ops;
};

}  // namespace autograph
