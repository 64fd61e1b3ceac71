// The experts of a mixture as exporters write them: every expert computes all tokens, and factors say how much of each
// counts.
//
//   sum over i of (swish(x gate_i) * (x up_i)) down_i * factor_i
#pragma once

#include <optional>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

struct Expert {
  ValueId gate, up;  ///< [width, inner], constants.
  ValueId down;      ///< [inner, columns], constant.
  ValueId factor;    ///< [..., 1]: a number for each token.
};

struct ExpertMix {
  ValueId x;  ///< [..., width]
  std::vector<Expert> experts;
  std::vector<NodeId> nodes;  ///< Of all experts, in an order that runs; the sum is the last.
  int64_t width = 0, inner = 0, columns = 0;
  int64_t tokens = 0;
};

/// The mixture that ends in `sum`: two experts or more with the same extents, all known; nothing else reads what is in
/// between. `is_weight` says what counts as one.
std::optional<ExpertMix> read_expert_mix(const Graph& graph, NodeId sum, bool (*is_weight)(const Graph&, ValueId));

}  // namespace autograph
