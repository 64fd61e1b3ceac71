#include "runtime/computed_states.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "autograph/op_def.h"
#include "graph/run_reference.h"

namespace autograph {

std::vector<ValueId> inputs_and_states(const Graph& graph) {
  std::vector<ValueId> values = graph.inputs();
  values.insert(values.end(), graph.states().begin(), graph.states().end());
  return values;
}

namespace {

// Products are left to kernels: the reference takes long.
bool can_compute(const Graph& graph, const Node& node) {
  const OpDef& op = node.op();
  if (!op.traits.pure || op.traits.random || op.traits.anchor || op.evaluate) return false;
  const auto is_static = [&](ValueId v) { return graph.type(v).is_static(); };
  return (op.reference || op.scalar) && std::all_of(node.outputs().begin(), node.outputs().end(), is_static);
}

// By value: the states that it is computed of, as inputs of the graph; nothing for what is made of anything else.
using Sources = std::unordered_map<uint32_t, std::set<size_t>>;

Sources find_sources(const Graph& graph, const ContentsOfInputs& states) {
  Sources sources;
  const std::vector<ValueId> given = inputs_and_states(graph);
  for (size_t i = 0; i < given.size(); ++i) {
    if (states[i].tensor.is_present()) sources[given[i].index] = {i};
  }
  const auto is_known = [&](ValueId v) {
    return !v.is_valid() || graph.value(v).is_constant() || sources.contains(v.index);
  };
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (!can_compute(graph, node) || !std::all_of(node.inputs().begin(), node.inputs().end(), is_known)) continue;
    std::set<size_t> all;
    for (const ValueId v : node.inputs()) {
      if (const auto of = sources.find(v.index); v.is_valid() && of != sources.end()) all.merge(std::set(of->second));
    }
    if (all.empty()) continue;
    for (const ValueId v : node.outputs()) sources[v.index] = all;
  }
  return sources;
}

// Computes values of a graph from states, each node once.
class Computation {
 public:
  Computation(const Graph& graph, const ContentsOfInputs& states) : graph_(graph) {
    const std::vector<ValueId> given = inputs_and_states(graph);
    for (size_t i = 0; i < given.size(); ++i) known_[given[i].index] = states[i].tensor;
  }

  Tensor elements(ValueId value) {
    if (!value.is_valid()) return {};
    if (graph_.value(value).is_constant()) return graph_.value(value).constant();
    if (!known_.contains(value.index)) compute(graph_.node(graph_.value(value).producer()));
    return known_.at(value.index);
  }

 private:
  void compute(const Node& node) {
    std::vector<Tensor> inputs;
    std::vector<Type> types;
    for (const ValueId v : node.inputs()) inputs.push_back(elements(v));
    for (const ValueId v : node.outputs()) types.push_back(graph_.type(v));
    std::vector<Tensor> results = run_reference(node.op(), node.attributes(), inputs, types);
    for (size_t k = 0; k < results.size(); ++k) known_[node.outputs()[k].index] = std::move(results[k]);
  }

  const Graph& graph_;
  std::unordered_map<uint32_t, Tensor> known_;  // by value
};

bool is_weight(const Type& type) {
  return type.is_tensor() && type.is_static() && dtypes::kFloat.contains(type.dtype()) &&
         type.shape().num_elements().value_or(0) > 1;
}

}  // namespace

ComputedStates::ComputedStates(const Graph& graph, const ContentsOfInputs& states) {
  const Sources sources = find_sources(graph, states);
  for (const NodeId id : graph.topological_order()) {
    if (!graph.node(id).op().traits.control_flow) continue;
    for (const ValueId v : graph.node(id).inputs()) {
      const bool is_computed = v.is_valid() && graph.value(v).producer().is_valid() && sources.contains(v.index);
      if (!is_computed || !is_weight(graph.type(v)) || find(v)) continue;
      const std::set<size_t>& of = sources.at(v.index);
      values_.push_back({v, {of.begin(), of.end()}, {}});
    }
  }
  renew(graph, states);
}

void ComputedStates::renew(const Graph& graph, const ContentsOfInputs& states) {
  std::optional<Computation> computation;  // once there is something to compute: most runs write no state
  for (Computed& computed : values_) {
    uint64_t version = 0;
    for (const size_t i : computed.states) version += states[i].version;
    StateContents& contents = computed.contents;
    if (contents.tensor.is_present() && contents.version == version) continue;
    contents = {};  // what it was makes room, unless a kernel has it
    if (!computation) computation.emplace(graph, states);
    contents = {computation->elements(computed.value), version};
  }
}

const StateContents* ComputedStates::find(ValueId value) const {
  const auto at = std::find_if(values_.begin(), values_.end(), [&](const Computed& c) { return c.value == value; });
  return at == values_.end() ? nullptr : &at->contents;
}

}  // namespace autograph
