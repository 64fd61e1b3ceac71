#include "autograph/foreign_node.h"

#include "base/check.h"

namespace autograph {

Type ForeignNode::input_type(size_t slot) const { return has_input(slot) ? graph.type(inputs[slot]) : Type(); }

std::optional<Tensor> ForeignNode::constant_input(size_t slot) const {
  if (!has_input(slot) || !graph.value(inputs[slot]).is_constant()) return std::nullopt;
  return graph.value(inputs[slot]).constant();
}

void ForeignNode::set_input(size_t slot, ValueId value) {
  if (inputs.size() <= slot) inputs.resize(slot + 1);
  inputs[slot] = value;
}

void ForeignNode::integers_to_input(std::string_view attribute, size_t slot) {
  const AttributeValue* value = attributes.find(attribute);
  if (!value) return;
  std::vector<int64_t> list;
  if (const auto* integers = std::get_if<std::vector<int64_t>>(value)) {
    list = *integers;
  } else if (const auto* single = std::get_if<int64_t>(value)) {
    list = {*single};
  } else {
    throw FormatError(fmt::format("[{}] attribute '{}': expected integers, got {} (node \"{}\")", op_type, attribute,
                                  to_string(type_of(*value)), provenance.to_string()));
  }
  attributes.erase(attribute);
  set_input(slot, constant(Tensor::vector(list)));
}

std::vector<ValueId> ForeignNode::add(const OpDef& other, std::vector<ValueId> node_inputs, Attributes node_attributes,
                                      int node_outputs) {
  while (!node_inputs.empty() && !node_inputs.back().is_valid()) node_inputs.pop_back();
  const NodeId id =
      graph.add_node(other, std::move(node_inputs), std::move(node_attributes), {provenance, node_outputs});
  return graph.node(id).outputs();
}

std::vector<ValueId> ForeignNode::emit() { return add(op, inputs, attributes, static_cast<int>(num_outputs)); }

}  // namespace autograph
