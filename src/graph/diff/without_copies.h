// A graph without nodes that hand on what they read, for comparing what graphs compute.
#pragma once

#include "autograph/graph.h"

namespace autograph {

/// `graph` without nodes whose output is their input, element for element, in the same shape: copies, which exporters
/// put before outputs and in the place of shared weights, and reshapes to the shape that is there.
Graph without_copies(const Graph& graph);

}  // namespace autograph
