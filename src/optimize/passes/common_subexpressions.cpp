// common_subexpressions: nodes with the same op, attributes and inputs become one; so do equal small constants.
//
// Nodes are visited in topological order, so that chains of equal nodes merge in one go. Impure and random nodes are
// left alone. Large constants are compared by buffer only: hashing gigabytes of weights would cost more than it saves.
#include <map>
#include <string>
#include <unordered_map>

#include "autograph/op_def.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

constexpr size_t kMaxComparedBytes = 4096;

bool merge_constants(Graph& graph) {
  bool changed = false;
  std::unordered_map<Hash128, ValueId> small;
  std::map<std::pair<const void*, std::string>, ValueId> large;
  for (const ValueId id : graph.constants()) {
    const Tensor& tensor = graph.value(id).constant();
    ValueId first;
    if (tensor.size_bytes() <= kMaxComparedBytes || tensor.dtype() == DType::string) {
      first = small.emplace(tensor.content_hash(), id).first->second;
      if (first != id && !tensor.bitwise_equal(graph.value(first).constant())) continue;
    } else {
      first = large.emplace(std::pair(tensor.raw(), to_string(tensor.type())), id).first->second;
    }
    if (first == id) continue;
    replace_value(graph, id, first);
    graph.erase_value(id);
    changed = true;
  }
  return changed;
}

bool same_node(const Graph& graph, NodeId a, NodeId b) {
  const Node& x = graph.node(a);
  const Node& y = graph.node(b);
  if (&x.op() != &y.op() || x.inputs() != y.inputs() || x.outputs().size() != y.outputs().size()) return false;
  for (size_t k = 0; k < x.outputs().size(); ++k) {
    if (!(graph.type(x.output(k)) == graph.type(y.output(k)))) return false;
  }
  return equal(x.attributes(), y.attributes());
}

// Cheap and good enough to find candidates: op and inputs.
size_t bucket_of(const Node& node) {
  size_t hash = std::hash<const void*>{}(&node.op());
  for (const ValueId v : node.inputs()) hash = hash * 1099511628211ULL + v.index;
  return hash;
}

}  // namespace

bool common_subexpressions(Graph& graph, PassContext&) {
  bool changed = merge_constants(graph);
  std::unordered_multimap<size_t, NodeId> seen;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (!node.op().traits.pure || node.op().traits.random) continue;
    const size_t bucket = bucket_of(node);
    NodeId twin;
    const auto [first, last] = seen.equal_range(bucket);
    for (auto it = first; it != last && !twin.is_valid(); ++it) {
      if (same_node(graph, it->second, id)) twin = it->second;
    }
    if (!twin.is_valid()) {
      seen.emplace(bucket, id);
      continue;
    }
    replace_node(graph, id, graph.node(twin).outputs());
    changed = true;
  }
  return changed;
}

}  // namespace autograph
