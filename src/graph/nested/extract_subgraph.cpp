#include "graph/nested/extract_subgraph.h"

#include <fmt/core.h>

#include <algorithm>

#include "autograph/op_def.h"
#include "graph/nested/copy_node.h"

namespace autograph {
namespace {

class Extractor {
 public:
  Extractor(const Graph& graph, const std::vector<NodeId>& nodes)
      : graph_(graph), taken_(graph.node_capacity(), 0), values_(graph.value_capacity()) {
    for (const NodeId id : nodes) taken_[id.index] = 1;
    part_.graph.set_name(graph.name());
  }

  Subgraph run() {
    const std::vector<NodeId> order = graph_.topological_order();
    // Inputs first, in the order of their first reader.
    for (const NodeId id : order) {
      if (!taken_[id.index]) continue;
      for (const ValueId v : graph_.node(id).inputs()) take_input(v);
    }
    for (const NodeId id : order) {
      if (taken_[id.index]) take_node(id);
    }
    for (const NodeId id : order) {
      if (!taken_[id.index]) continue;
      for (const ValueId v : graph_.node(id).outputs()) take_output(v);
    }
    for (const ValueId v : graph_.kept()) {
      if (is_made_inside(v)) part_.graph.keep(values_[v.index]);
    }
    return std::move(part_);
  }

 private:
  bool is_made_inside(ValueId v) const {
    const NodeId producer = graph_.value(v).producer();
    return producer.is_valid() && taken_[producer.index];
  }

  std::string name_of(ValueId v) const {
    const std::string& name = graph_.value(v).name();
    return name.empty() ? fmt::format("value_{}", v.index) : name;
  }

  void take_input(ValueId v) {
    if (!v.is_valid() || is_made_inside(v) || values_[v.index].is_valid()) return;
    const Value& value = graph_.value(v);
    if (value.is_constant()) {
      values_[v.index] = part_.graph.add_constant(value.constant(), value.name());
    } else {  // states, too: the part reads them, the whole keeps them
      values_[v.index] = part_.graph.add_input(value.type(), name_of(v));
      part_.inputs.push_back(v);
    }
  }

  void take_node(NodeId id) {
    const Node& node = graph_.node(id);
    copy_node_typed(part_.graph, graph_, node, values_);
    for (const ValueId v : node.outputs()) part_.graph.set_value_name(values_[v.index], graph_.value(v).name());
  }

  void take_output(ValueId v) {
    const auto& uses = graph_.value(v).uses();
    const bool is_read = graph_.num_output_uses(v) > 0 ||
                         std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return !taken_[use.node.index]; });
    if (!is_read) return;
    part_.graph.add_output(values_[v.index], name_of(v));
    part_.outputs.push_back(v);
  }

  const Graph& graph_;
  std::vector<uint8_t> taken_;   // by node index
  std::vector<ValueId> values_;  // by value of the graph
  Subgraph part_;
};

}  // namespace

Subgraph extract_subgraph(const Graph& graph, const std::vector<NodeId>& nodes) {
  return Extractor(graph, nodes).run();
}

}  // namespace autograph
