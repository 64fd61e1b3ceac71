// simplify_branches: an `if` whose condition is known becomes the branch that runs; captured constants become constants
// of the branches, whose kernels pack them once, and what neither branch reads is not captured any more.
#include <algorithm>
#include <array>

#include "autograph/op_def.h"
#include "autograph/verify.h"
#include "graph/nested/inline_graph.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

constexpr std::array<std::string_view, 2> kBranches{"then_branch", "else_branch"};

// The condition, when it is a constant.
std::optional<bool> constant_condition(const Graph& graph, const Node& node) {
  const Value& value = graph.value(node.input(0));
  if (!value.is_constant() || value.constant().num_elements() != 1) return std::nullopt;
  return *value.constant().data<bool>();
}

bool put_branch_in_place(Graph& graph, NodeId id, bool condition) {
  const Node node = graph.node(id);  // a copy: the graph grows
  const std::vector<ValueId> captured(node.inputs().begin() + 1, node.inputs().end());
  std::vector<ValueId> results;
  try {
    const auto branch = node.attributes().get<GraphRef>(kBranches[condition ? 0 : 1]);
    results = inline_graph(graph, *branch, captured);
  } catch (const UserError&) {
    return false;  // belongs to the run
  }
  replace_node(graph, id, results);
  return true;
}

// The branch with constants in the place of inputs, and without the inputs marked as dropped.
GraphRef specialised(const Graph& graph, const Graph& branch, const std::vector<ValueId>& captured,
                     const std::vector<uint8_t>& is_dropped) {
  auto result = std::make_shared<Graph>(branch.name());
  std::vector<ValueId> inputs;
  for (size_t k = 0; k < captured.size(); ++k) {
    const Value& outer = graph.value(captured[k]);
    const std::string& name = branch.value(branch.inputs()[k]).name();
    inputs.push_back(outer.is_constant()  ? result->add_constant(outer.constant(), name)
                     : is_dropped[k] != 0 ? ValueId{}
                                          : result->add_input(outer.type(), name));
  }
  const std::vector<ValueId> outputs = inline_graph(*result, branch, inputs);
  for (size_t k = 0; k < outputs.size(); ++k) result->add_output(outputs[k], branch.output_name(k));
  result->erase_dead();
  return result;
}

bool take_constants(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  const std::vector<ValueId> captured(node.inputs().begin() + 1, node.inputs().end());
  std::vector<uint8_t> is_dropped(captured.size(), 0);
  for (size_t k = 0; k < captured.size(); ++k) {
    const bool is_read = std::any_of(kBranches.begin(), kBranches.end(), [&](std::string_view name) {
      const Graph& branch = *node.attributes().get<GraphRef>(name);
      return !branch.value(branch.inputs()[k]).uses().empty() || branch.num_output_uses(branch.inputs()[k]) > 0;
    });
    is_dropped[k] = static_cast<uint8_t>(!is_read || graph.value(captured[k]).is_constant());
  }
  if (std::none_of(is_dropped.begin(), is_dropped.end(), [](uint8_t dropped) { return dropped != 0; })) return false;
  Attributes attributes = node.attributes();
  try {
    for (const std::string_view name : kBranches) {
      attributes.set(name, specialised(graph, *node.attributes().get<GraphRef>(name), captured, is_dropped));
    }
  } catch (const UserError&) {
    return false;  // a branch that cannot run with these types; it may never be taken
  }
  std::vector<ValueId> inputs{node.input(0)};
  for (size_t k = 0; k < captured.size(); ++k) {
    if (!is_dropped[k]) inputs.push_back(captured[k]);
  }
  const NodeId fresh =
      graph.add_node(if_def(), inputs, attributes, {node.provenance(), static_cast<int>(node.outputs().size())});
  replace_node(graph, id, graph.node(fresh).outputs());
  return true;
}

}  // namespace

bool simplify_branches(Graph& graph, PassContext&) {
  bool changed = false;
  for (const NodeId id : graph.topological_order()) {
    if (&graph.node(id).op() != &if_def()) continue;
    // Others stand behind an output of a node with effects, not behind what is inside it.
    const bool has_effects = has_effect(if_def(), graph.node(id).attributes());
    const auto condition = has_effects ? std::nullopt : constant_condition(graph, graph.node(id));
    changed = (condition && put_branch_in_place(graph, id, *condition)) || changed;
    if (graph.is_live(id)) changed = take_constants(graph, id) || changed;
  }
  if (!changed) return false;
  graph.erase_dead();
  infer_types(graph);
  return true;
}

}  // namespace autograph
