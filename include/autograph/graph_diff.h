// What two graphs do not have in common: for models before and after an export, an edit, a training run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// What has changed.
enum class GraphPart : uint8_t {
  node,
  weight,  ///< A constant that a node reads.
  input,   ///< Of the graph, as the rest.
  output,
  state,
};

/// How.
enum class ChangeKind : uint8_t { added, removed, changed };

/// "node", "weight", ... and "added", ...
std::string_view to_string(GraphPart part);
std::string_view to_string(ChangeKind kind);

/// One change from graph A to graph B.
struct GraphChange {
  ChangeKind kind = ChangeKind::changed;
  GraphPart part = GraphPart::node;
  std::string name;                       ///< In A, of what was added in B; of a node its provenance, else its op.
  std::string op;                         ///< Of a node, as `name`.
  std::vector<std::string> details = {};  ///< Of what was changed: "attribute pads: [0, 0] -> [1, 1]".
};

/// "node conv1 (conv) changed: attribute pads: [0, 0] -> [1, 1]; ..."
std::string to_string(const GraphChange& change);

/// All changes from one graph to another.
struct GraphDiff {
  std::vector<GraphChange> changes;  ///< Inputs, states, nodes in topological order, weights, outputs.
  size_t num_matched = 0;            ///< Nodes of A that B has, too, changed ones among them.
  bool is_same() const { return changes.empty(); }
};

/// Nodes are told by what they compute, then by the names of their weights and by what stands around them (of several
/// that read the same by the shapes of weights and by what reads them), then by their names: so nodes that were
/// renamed, numbered anew or stored in another order are the same nodes, and a node that was put between two others is
/// one change to the node behind it. Nodes that hand on what they read (copies, reshapes to the shape that is there)
/// are passed over. Weights are compared bit by bit, bodies of loops and branches as graphs. Weights that differ by no
/// more than `tolerance` of their largest element are the same: exporters that merge batch normalization round in
/// other places.
GraphDiff diff_graphs(const Graph& a, const Graph& b, double tolerance = 0);

}  // namespace autograph
