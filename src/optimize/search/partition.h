// Flow-based partition (MetaFlow, SysML 2019; AutoGraph, AAAI 2023, figure 4): a graph is cut in two where the fewest
// rewrites and bytes cross, again and again, until every part is small; then neighbours are merged into larger
// sub-graphs, so that rewrites across a cut are seen from one of them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "autograph/graph.h"
#include "optimize/rules/rule.h"

namespace autograph {

/// How large parts are, in nodes that do not depend on constants alone.
struct PartitionOptions {
  int size_lower = 12;  ///< Parts are cut until they have fewer nodes.
  int size_upper = 30;  ///< Merged neighbours have fewer.
  /// Asked before each cut; what is left when it says so stays one part. Null: never.
  std::function<bool()> should_stop = nullptr;
};

/// Parts p_0 ... p_k-1 in topological order, and which intervals of them are sub-graphs of their own.
struct Partition {
  std::vector<std::vector<NodeId>> parts;  ///< Nodes in topological order; every live node is in exactly one.
  /// [first, last], both inclusive: every single part, and every run of neighbours below the upper size.
  std::vector<std::pair<uint32_t, uint32_t>> intervals;
};

/// Every edge between parts leads forward. `matches` are all rewrites of the graph. Deterministic.
Partition partition(const Graph& graph, std::span<const RuleMatch> matches, const PartitionOptions& options);

/// The same as one part.
Partition whole_graph(const Graph& graph);

}  // namespace autograph
