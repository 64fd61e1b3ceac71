// The canonical structural hash.
//
// Every value gets a hash from what computes it (op, attributes, hashes of the inputs), so names and node order cannot
// matter. The graph's hash joins the hashes of the outputs, in order, with those of what is kept, in its order, and
// the sorted hashes of states, of what updates them and of all live nodes: the latter tell a node that is computed
// twice from one that is shared. The names of states count: stores know states by them.
#include <algorithm>
#include <vector>

#include "autograph/graph.h"
#include "autograph/op_def.h"
#include "base/hash.h"
#include "graph/attribute_hash.h"

namespace autograph {
namespace {

Hash128 hash_type(const Type& type) {
  Hasher hasher;
  return hasher.add(to_string(type)).finish();
}

Hash128 hash_node(const Node& node, const std::vector<Hash128>& values) {
  Hasher hasher;
  hasher.add(node.op().name).add(static_cast<int64_t>(node.outputs().size()));
  add_attributes(hasher, node.attributes());
  for (const ValueId input : node.inputs()) {
    hasher.add(input.is_valid() ? values[input.index] : Hash128{});
  }
  return hasher.finish();
}

}  // namespace

Hash128 structural_hash(const Graph& graph) {
  std::vector<Hash128> values(graph.value_capacity());
  std::vector<Hash128> states;  // and what updates them: in no order
  Hasher result;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    Hasher hasher;
    hasher.add("input").add(static_cast<int64_t>(i)).add(hash_type(graph.type(graph.inputs()[i])));
    values[graph.inputs()[i].index] = hasher.finish();
    result.add(hasher.finish());
  }
  for (const ValueId constant : graph.constants()) {
    values[constant.index] = graph.value(constant).constant().content_hash();
  }
  for (const ValueId state : graph.states()) {
    const Value& value = graph.value(state);
    Hasher hasher;
    hasher.add("state").add(value.name()).add(value.initial().content_hash());
    values[state.index] = hasher.finish();
    states.push_back(hasher.finish());
  }
  std::vector<Hash128> nodes;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    const Hash128 hash = hash_node(node, values);
    nodes.push_back(hash);
    for (size_t slot = 0; slot < node.outputs().size(); ++slot) {
      Hasher hasher;
      values[node.outputs()[slot].index] = hasher.add(hash).add(static_cast<int64_t>(slot)).finish();
    }
  }
  for (const ValueId output : graph.outputs()) result.add(values[output.index]);
  for (const StateUpdate& update : graph.updates()) {
    Hasher hasher;
    states.push_back(hasher.add("update").add(values[update.state.index]).add(values[update.value.index]).finish());
  }
  for (const ValueId kept : graph.kept()) {
    Hasher hasher;
    result.add(hasher.add("keep").add(values[kept.index]).finish());
  }
  std::sort(states.begin(), states.end());
  for (const Hash128& state : states) result.add(state);
  std::sort(nodes.begin(), nodes.end());
  for (const Hash128& node : nodes) result.add(node);
  return result.finish();
}

}  // namespace autograph
