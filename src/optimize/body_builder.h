// Collects nodes of a graph into the body of a `fused` node and puts that node in their place.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "autograph/graph.h"
#include "base/function_ref.h"
#include "optimize/pass.h"

namespace autograph {

/// Scalars become constants of the body; everything else that is read from outside becomes an input of the
/// fused node, so that weights stay where they are. Nothing is added any more once a kernel was asked about, or a node
/// made: the body that was asked about is the one that is put in place.
class BodyBuilder {
 public:
  explicit BodyBuilder(const Graph& graph) : graph_(graph), body_(std::make_shared<Graph>("body")) {}
  BodyBuilder(BodyBuilder&&) = default;

  /// Copies a node behind all that were added before.
  void add(const Node& node);
  /// Makes a constant of the graph a constant of the body, however large: kernels may then ask for its elements.
  void add_constant(ValueId outer);
  /// Would a kernel of the device run the nodes as one, with the value of the last as its output?
  bool has_kernel(const PassContext& context) const;
  /// As has_kernel(), extents that are not known yet taken as typical ones.
  bool expects_kernel(const PassContext& context) const;
  /// Adds a fused node to `graph`, the one given to the constructor.
  NodeId make(Graph& graph) const;
  /// As make(); the node takes over the value of the last one that was added.
  NodeId emit(Graph& graph) const;
  /// As emit(); those of `nodes` go that nobody reads then. `nodes` stand in topological order.
  void replace(Graph& graph, std::span<const NodeId> nodes) const;
  size_t num_inputs() const { return outer_inputs_.size(); }

 private:
  ValueId inner(ValueId outer);
  GraphRef finish() const;
  NodeId add_to(Graph& trial) const;

  const Graph& graph_;
  std::shared_ptr<Graph> body_;
  mutable bool is_finished_ = false;                // the body has its output
  ValueId last_;                                    // inner
  ValueId outer_last_;                              // the same value outside
  std::vector<std::pair<ValueId, ValueId>> known_;  // outer to inner
  std::vector<ValueId> outer_inputs_;
  Provenance provenance_;
};

/// Calls `fuse` with each node that has the trait `anchor`: from the back, so that of two producers of a sum the later
/// one takes it. True, and what nobody reads is erased, when one of the calls gave true.
bool fuse_from_anchors(Graph& graph, FunctionRef<bool(NodeId)> fuse);

}  // namespace autograph
