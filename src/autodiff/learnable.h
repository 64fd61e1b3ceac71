// Which constants and states of a model are weights, and which are settings.
#pragma once

#include <cstddef>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// Slots of the statistics that a batch norm for inference reads.
constexpr size_t kMean = 3;
constexpr size_t kVariance = 4;

/// Is this a batch norm that reads its statistics?
bool infers_statistics(const Node& node);

/// Constants and states of floats that may learn, in the order in which nodes read them: neither scalars, empty ones,
/// masks, statistics of a batch norm, nor states that the model updates, nor what shapes follow from.
std::vector<ValueId> learnable_values(const Graph& graph);

}  // namespace autograph
