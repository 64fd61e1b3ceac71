// RuleBuilder: what `build` functions make nodes with.
#include <algorithm>

#include "base/check.h"
#include "ops/defs.h"
#include "optimize/rules/siblings.h"
#include "tensor/element_types.h"

namespace autograph {

RuleBuilder::RuleBuilder(Graph& graph, const RuleMatch& match) : graph_(graph), match_(match) {
  for (const NodeId node : match.inner()) {
    provenance_ = Provenance::merged(provenance_, graph.node(node).provenance());
  }
  for (const NodeId node : match.nodes()) {
    provenance_ = Provenance::merged(provenance_, graph.node(node).provenance());
  }
}

ValueId RuleBuilder::add(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes) {
  const NodeId node = graph_.add_node(op, std::move(inputs), std::move(attributes), {provenance_, -1});
  return graph_.node(node).output(0);
}

std::vector<ValueId> RuleBuilder::add_all(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes,
                                          int num_outputs) {
  const NodeId node = graph_.add_node(op, std::move(inputs), std::move(attributes), {provenance_, num_outputs});
  return graph_.node(node).outputs();
}

ValueId RuleBuilder::add_like(const Node& model, std::vector<ValueId> inputs) {
  // Copies: the model may move when the graph grows.
  const OpDef& op = model.op();
  Attributes attributes = model.attributes();
  const NodeId node = graph_.add_node(op, std::move(inputs), std::move(attributes), {provenance_, -1});
  return graph_.node(node).output(0);
}

ValueId RuleBuilder::constant(Tensor tensor) { return graph_.add_constant(std::move(tensor)); }

ValueId RuleBuilder::integers(std::vector<int64_t> values) { return constant(Tensor::vector(values)); }

ValueId RuleBuilder::number(DType dtype, double value) { return filled(dtype, {}, value); }

ValueId RuleBuilder::filled(DType dtype, Dims dims, double value) {
  Tensor tensor = Tensor::zeros(dtype, std::move(dims));
  dispatch<NumericTypes>(dtype, [&]<class T>(TypeTag<T>) {
    std::fill_n(tensor.mutable_data<T>(), tensor.num_elements(), static_cast<T>(value));
  });
  return constant(std::move(tensor));
}

ValueId RuleBuilder::concat(std::vector<ValueId> values, int64_t axis) {
  if (values.size() == 1) return values.front();
  for (const Use& use : graph_.value(values.front()).uses()) {
    const Node& node = graph_.node(use.node);
    if (&node.op() == &concat_def() && node.inputs() == values && node.attributes().integer("axis") == axis) {
      return node.output(0);
    }
  }
  return add(concat_def(), std::move(values), {{"axis", axis}});
}

std::vector<ValueId> RuleBuilder::split(ValueId value, std::vector<int64_t> sizes, int64_t axis) {
  const int count = static_cast<int>(sizes.size());
  return add_all(split_def(), {value, integers(std::move(sizes))}, {{"axis", axis}}, count);
}

std::vector<ValueId> RuleBuilder::hand_out(const std::vector<ValueId>& old, const std::vector<ValueId>& made) {
  std::vector<ValueId> own;
  std::vector<uint8_t> is_own(old.size(), 0);
  for (const NodeId node : match_.nodes()) {
    for (const ValueId output : graph_.node(node).outputs()) {
      const auto at = static_cast<size_t>(std::find(old.begin(), old.end(), output) - old.begin());
      if (at == old.size()) continue;
      own.push_back(made[at]);
      is_own[at] = 1;
    }
  }
  for (size_t i = 0; i < old.size(); ++i) {
    if (!is_own[i]) replace(old[i], made[i]);
  }
  return own;
}

std::vector<ValueId> RuleBuilder::hand_out_pieces(const std::vector<ValueId>& old, ValueId whole, int64_t axis) {
  return hand_out(old, split(whole, extents_along(graph_, old, axis), axis));
}

ValueId RuleBuilder::reshape(ValueId value, Dims dims) {
  return add(reshape_def(), {value, integers(std::move(dims))});
}

ValueId RuleBuilder::transpose(ValueId value, std::vector<int64_t> perm) {
  return add(transpose_def(), {value}, {{"perm", std::move(perm)}});
}

}  // namespace autograph
