// The verifier and type inference over a whole graph.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// Throws FormatError listing everything that is wrong with the graph: dangling ids, use lists that disagree with
/// inputs, cycles, missing or ill-typed attributes, dtypes outside the schema, types that differ from what infer says.
/// Nested graphs are verified too.
void verify(const Graph& graph);

/// Elements of values that are known before running.
using KnownValues = std::unordered_map<uint32_t, Tensor>;

/// Limits on evaluating nodes during inference.
struct InferOptions {
  int64_t max_known_elements = 1024;  ///< Results larger than this are not computed ahead of time.
};

/// Infers the type of every value again from the types of the inputs, computing small known values (shape arithmetic)
/// on the way, and returns those. Throws what an op's infer throws.
KnownValues infer_types(Graph& graph, const InferOptions& options = {});

}  // namespace autograph
