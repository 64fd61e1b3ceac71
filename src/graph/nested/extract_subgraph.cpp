#include "graph/nested/extract_subgraph.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "autograph/op_def.h"

namespace autograph {
namespace {

class Extractor {
 public:
  Extractor(const Graph& graph, const std::vector<NodeId>& nodes) : graph_(graph), taken_(graph.node_capacity(), 0) {
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
      if (is_made_inside(v)) part_.graph.keep(values_.at(v));
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
    if (!v.is_valid() || is_made_inside(v) || values_.contains(v)) return;
    const Value& value = graph_.value(v);
    if (value.is_constant()) {
      values_[v] = part_.graph.add_constant(value.constant(), value.name());
    } else {  // states, too: the part reads them, the whole keeps them
      values_[v] = part_.graph.add_input(value.type(), name_of(v));
      part_.inputs.push_back(v);
    }
  }

  void take_node(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<ValueId> inputs;
    for (const ValueId v : node.inputs()) inputs.push_back(v.is_valid() ? values_.at(v) : v);
    std::vector<Type> types;
    for (const ValueId v : node.outputs()) types.push_back(graph_.type(v));
    const NodeId copy = part_.graph.add_node_typed(node.op(), std::move(inputs), node.attributes(), std::move(types),
                                                   node.provenance());
    for (size_t slot = 0; slot < node.outputs().size(); ++slot) {
      values_[node.output(slot)] = part_.graph.node(copy).output(slot);
      part_.graph.set_value_name(part_.graph.node(copy).output(slot), graph_.value(node.output(slot)).name());
    }
  }

  void take_output(ValueId v) {
    const auto& uses = graph_.value(v).uses();
    const bool is_read = graph_.num_output_uses(v) > 0 ||
                         std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return !taken_[use.node.index]; });
    if (!is_read) return;
    part_.graph.add_output(values_.at(v), name_of(v));
    part_.outputs.push_back(v);
  }

  const Graph& graph_;
  std::vector<uint8_t> taken_;  // by node index
  std::map<ValueId, ValueId> values_;
  Subgraph part_;
};

}  // namespace

Subgraph extract_subgraph(const Graph& graph, const std::vector<NodeId>& nodes) {
  return Extractor(graph, nodes).run();
}

}  // namespace autograph
