#include "optimize/body_builder.h"

#include "autograph/op_def.h"
#include "base/check.h"
#include "ops/defs.h"
#include "optimize/match.h"

namespace autograph {

void BodyBuilder::add(const Node& node) {
  AG_CHECK(!is_finished_, "a body that was finished before {}", node.op().name);
  std::vector<ValueId> inputs;
  for (const ValueId v : node.inputs()) inputs.push_back(v.is_valid() ? inner(v) : ValueId{});
  std::vector<Type> types;
  for (const ValueId v : node.outputs()) types.push_back(graph_.type(v));
  const NodeId copy = body_->add_node_typed(node.op(), std::move(inputs), node.attributes(), std::move(types));
  last_ = body_->node(copy).output(0);
  outer_last_ = node.output(0);
  known_.emplace_back(outer_last_, last_);
  provenance_ = Provenance::merged(provenance_, node.provenance());
}

ValueId BodyBuilder::inner(ValueId outer) {
  for (const auto& [from, to] : known_) {
    if (from == outer) return to;
  }
  const Value& value = graph_.value(outer);
  ValueId made;
  if (value.is_constant() && value.constant().num_elements() == 1) {
    made = body_->add_constant(value.constant());
  } else {
    made = body_->add_input(value.type());
    outer_inputs_.push_back(outer);
  }
  known_.emplace_back(outer, made);
  return made;
}

GraphRef BodyBuilder::finish() const {
  if (!is_finished_) body_->add_output(last_);
  is_finished_ = true;
  return body_;
}

void BodyBuilder::add_constant(ValueId outer) {
  AG_CHECK(!is_finished_, "a body that was finished before a constant");
  for (const auto& [from, to] : known_) {
    if (from == outer) return;
  }
  known_.emplace_back(outer, body_->add_constant(graph_.value(outer).constant()));
}

// The node in a graph of its own, with the constants that it reads: kernels may need their elements.
NodeId BodyBuilder::add_to(Graph& trial) const {
  std::vector<ValueId> inputs;
  for (const ValueId v : outer_inputs_) {
    const Value& value = graph_.value(v);
    inputs.push_back(value.is_constant() ? trial.add_constant(value.constant()) : trial.add_input(value.type()));
  }
  return trial.add_node_typed(fused_def(), std::move(inputs), {{"body", finish()}}, {graph_.type(outer_last_)});
}

bool BodyBuilder::has_kernel(const PassContext& context) const {
  Graph trial;
  const NodeId node = add_to(trial);
  return context.has_kernel(trial, node);
}

bool BodyBuilder::expects_kernel(const PassContext& context) const {
  Graph trial;
  const NodeId node = add_to(trial);
  return context.expects_kernel(trial, node);
}

NodeId BodyBuilder::make(Graph& graph) const {
  return graph.add_node_typed(fused_def(), outer_inputs_, {{"body", finish()}}, {graph.type(outer_last_)}, provenance_);
}

NodeId BodyBuilder::emit(Graph& graph) const {
  const NodeId fused = make(graph);
  graph.set_value_name(graph.node(fused).output(0), graph.value(outer_last_).name());
  graph.replace_uses(outer_last_, graph.node(fused).output(0));
  return fused;
}

void BodyBuilder::replace(Graph& graph, std::span<const NodeId> nodes) const {
  emit(graph);
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    if (num_reads(graph, graph.node(*it).output(0)) == 0) graph.erase_node(*it);
  }
}

bool fuse_from_anchors(Graph& graph, FunctionRef<bool(NodeId)> fuse) {
  bool changed = false;
  const std::vector<NodeId> order = graph.topological_order();
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (graph.is_live(*it) && graph.node(*it).op().traits.anchor) changed = fuse(*it) || changed;
  }
  if (changed) graph.erase_dead();
  return changed;
}

}  // namespace autograph
