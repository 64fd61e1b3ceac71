// Weights inside the bodies of loops and branches.
#pragma once

#include "autograph/graph.h"

namespace autograph {

/// Has nodes with bodies (`if`, `loop`, `scan`, `sequence_map`...) capture the weights that these hold as constants
/// (learnable_values()) from the graph around them, where they may be asked for and learn. Constants that share their
/// elements become one. Importers copy into a body what it reads of the graph around it.
void capture_weights(Graph& graph);

}  // namespace autograph
