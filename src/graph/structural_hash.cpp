// The canonical structural hash.
//
// Every value gets a hash from what computes it (op, attributes, hashes of the inputs), so names and node order cannot
// matter. The graph's hash joins the hashes of the outputs, in order, with the sorted hashes of all live nodes: the
// latter tell a node that is computed twice from one that is shared.
#include <algorithm>
#include <vector>

#include "autograph/graph.h"
#include "autograph/op_def.h"
#include "base/hash.h"

namespace autograph {
namespace {

Hash128 hash_type(const Type& type) {
  Hasher hasher;
  return hasher.add(to_string(type)).finish();
}

template <class T>
void add_list(Hasher& hasher, const std::vector<T>& list) {
  hasher.add(static_cast<int64_t>(list.size()));
  for (const T& item : list) {
    if constexpr (std::is_same_v<T, std::string>)
      hasher.add(std::string_view(item));
    else
      hasher.add(hash_bytes(&item, sizeof item));
  }
}

void add_attribute(Hasher& hasher, const AttributeValue& value) {
  hasher.add(static_cast<int64_t>(value.index()));
  std::visit(
      [&hasher]<class T>(const T& v) {
        if constexpr (std::is_same_v<T, int64_t>)
          hasher.add(v);
        else if constexpr (std::is_same_v<T, float>)
          hasher.add(hash_bytes(&v, sizeof v));
        else if constexpr (std::is_same_v<T, std::string>)
          hasher.add(std::string_view(v));
        else if constexpr (std::is_same_v<T, DType>)
          hasher.add(static_cast<int64_t>(v));
        else if constexpr (std::is_same_v<T, Tensor>)
          hasher.add(v.content_hash());
        else if constexpr (std::is_same_v<T, GraphRef>)
          hasher.add(structural_hash(*v));
        else
          add_list(hasher, v);
      },
      value);
}

Hash128 hash_node(const Node& node, const std::vector<Hash128>& values) {
  Hasher hasher;
  hasher.add(node.op().name).add(static_cast<int64_t>(node.outputs().size()));
  for (const auto& [name, value] : node.attributes()) {
    hasher.add(std::string_view(name));
    add_attribute(hasher, value);
  }
  for (const ValueId input : node.inputs()) {
    hasher.add(input.is_valid() ? values[input.index] : Hash128{});
  }
  return hasher.finish();
}

}  // namespace

Hash128 structural_hash(const Graph& graph) {
  std::vector<Hash128> values(graph.value_capacity());
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
  std::sort(nodes.begin(), nodes.end());
  for (const Hash128& node : nodes) result.add(node);
  return result.finish();
}

}  // namespace autograph
