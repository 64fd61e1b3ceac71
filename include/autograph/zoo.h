// The built-in models: real architectures with seeded weights, the same on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// One built-in model.
struct ZooEntry {
  std::string name;         ///< As in "zoo:NAME".
  std::string description;  ///< Which reading of which paper.
  bool is_variant = false;  ///< Another reading of a model of the table.
};

/// All models, in the order of the table.
const std::vector<ZooEntry>& zoo_models();

/// Builds a model with batch `batch`; throws UserError with the nearest name when there is none.
Graph build_zoo_model(std::string_view name, int64_t batch = 1);

/// The same without drawing its weights: nodes, types and shapes are those of build_zoo_model(), elements of large
/// weights (above 4096) are anything. Takes a thirtieth of the time; for who asks how large models are.
Graph outline_zoo_model(std::string_view name, int64_t batch = 1);

}  // namespace autograph
