#include "optimize/search/part_graph.h"

#include <algorithm>
#include <unordered_set>

#include "autograph/op_def.h"
#include "base/check.h"
#include "base/hash.h"
#include "graph/attribute_hash.h"
#include "graph/nested/copy_node.h"

namespace autograph {
void PartCutter::bring_in(PartGraph& part, ValueId v) {
  if (!v.is_valid() || inner_[v.index].is_valid()) return;
  const Value& value = whole_.value(v);
  if (value.is_constant()) {
    inner_[v.index] = part.graph.add_constant(value.constant(), value.name());
    part.constants.resize(part.graph.value_capacity());
    part.constants[inner_[v.index].index] = v;
  } else {
    inner_[v.index] = part.graph.add_input(value.type());
    part.inputs.push_back(v);
  }
}

PartGraph PartCutter::cut(const std::vector<NodeId>& nodes) {
  PartGraph part;
  std::unordered_set<uint32_t> inside;
  for (const NodeId id : nodes) inside.insert(id.index);
  for (const NodeId id : nodes) {
    const Node& node = whole_.node(id);
    for (const ValueId v : node.inputs()) bring_in(part, v);
    copy_node_typed(part.graph, whole_, node, inner_);
  }
  const auto is_read_outside = [&](ValueId v) {
    const auto& uses = whole_.value(v).uses();
    return whole_.num_output_uses(v) > 0 ||
           std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return !inside.contains(use.node.index); });
  };
  for (const NodeId id : nodes) {
    for (const ValueId v : whole_.node(id).outputs()) {
      if (!is_read_outside(v)) continue;
      part.graph.add_output(inner_[v.index]);
      part.outputs.push_back(v);
    }
  }
  part.constants.resize(part.graph.value_capacity());
  // As it was: emptying all of it would take as long as the whole is large, for each part.
  for (const NodeId id : nodes) {
    for (const ValueId v : whole_.node(id).inputs()) {
      if (v.is_valid()) inner_[v.index] = {};
    }
    for (const ValueId v : whole_.node(id).outputs()) inner_[v.index] = {};
  }
  return part;
}

PartGraph extract_part(const Graph& whole, const std::vector<NodeId>& nodes) { return PartCutter(whole).cut(nodes); }

Hash128 part_key(const PartGraph& part) {
  const Graph& graph = part.graph;
  Hasher hasher;
  for (uint32_t i = 0; i < graph.value_capacity(); ++i) {
    const Value& value = graph.value({i});
    hasher.add(static_cast<int64_t>(value.is_constant())).add(to_string(value.type()));
    // Small constants decide whether rules apply: shapes, axes, factors.
    if (value.is_constant() && value.constant().num_elements() <= 16) hasher.add(value.constant().content_hash());
  }
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    hasher.add(node.op().name);
    add_attributes(hasher, node.attributes());
    for (const auto* values : {&node.inputs(), &node.outputs()}) {
      hasher.add(static_cast<int64_t>(values->size()));
      for (const ValueId v : *values) hasher.add(static_cast<int64_t>(v.index));
    }
  }
  for (const ValueId v : graph.outputs()) hasher.add(static_cast<int64_t>(v.index));
  return hasher.finish();
}

void replace_part(Graph& whole, const PartGraph& part, const Graph& replacement, std::vector<ValueId>& now) {
  std::vector<ValueId> outer(replacement.value_capacity());
  for (size_t i = 0; i < part.inputs.size(); ++i) outer[replacement.inputs()[i].index] = now[part.inputs[i].index];
  for (const ValueId v : replacement.constants()) {
    const ValueId known = v.index < part.constants.size() ? part.constants[v.index] : ValueId{};
    outer[v.index] =
        known.is_valid() ? known : whole.add_constant(replacement.value(v).constant(), replacement.value(v).name());
  }
  for (const NodeId id : replacement.topological_order()) {
    copy_node_typed(whole, replacement, replacement.node(id), outer);
  }
  for (size_t k = 0; k < part.outputs.size(); ++k) {
    const ValueId old = part.outputs[k];
    const ValueId fresh = outer[replacement.outputs()[k].index];
    AG_CHECK(fresh.is_valid(), "part: output {} is made by nothing", k);
    if (whole.value(fresh).name().empty()) whole.set_value_name(fresh, whole.value(old).name());
    whole.replace_uses(now[old.index], fresh);
    now[old.index] = fresh;
  }
}

}  // namespace autograph
