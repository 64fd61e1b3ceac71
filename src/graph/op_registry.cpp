// Look-up in the table of ops. The table itself is generated from the op sources (ops/op_table.cpp), one layer up.
#include <algorithm>
#include <vector>

#include "autograph/op_def.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "graph/moved_bytes.h"

namespace autograph {
namespace {

// 0 while the extents are not known, and for sequences.
double elements_of(const Type& type) {
  return type.is_static() ? static_cast<double>(type.shape().num_elements().value_or(0)) : 0.0;
}

}  // namespace

const AttributeSpec* find_attribute(const OpDef& op, std::string_view name) {
  for (const AttributeSpec& spec : op.attributes) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

const OpDef* find_op(std::string_view name) {
  const auto ops = all_ops();
  const auto it =
      std::lower_bound(ops.begin(), ops.end(), name, [](const OpDef* op, std::string_view n) { return op->name < n; });
  return it != ops.end() && (*it)->name == name ? *it : nullptr;
}

const OpDef& get_op(std::string_view name) {
  const OpDef* op = find_op(name);
  if (op) return *op;
  std::vector<std::string> names;
  for (const OpDef* known : all_ops()) names.emplace_back(known->name);
  throw UnsupportedError(fmt::format("[ops] op '{}': unknown{}", name, did_you_mean(name, names)));
}

bool has_effect(const OpDef& op, const Attributes& attributes) {
  if (op.traits.effect || op.traits.collective) return true;
  return op.traits.control_flow && std::any_of(attributes.begin(), attributes.end(), [](const auto& attribute) {
           const auto* nested = std::get_if<GraphRef>(&attribute.second);
           return nested && *nested && !(*nested)->kept().empty();
         });
}

OpCost cost_of(const OpDef& op, const CostContext& context) {
  if (op.cost) return op.cost(context);
  if (op.traits.view) return {};
  OpCost cost{.bytes = moved_bytes(context)};
  for (const Type& type : context.outputs) cost.flops += elements_of(type);
  return cost;
}

double moved_bytes(const CostContext& context) {
  double bytes = 0;
  for (const std::span<const Type> types : {context.inputs, context.outputs}) {
    for (const Type& type : types) {
      if (type.is_static()) bytes += elements_of(type) * static_cast<double>(element_size(type.dtype()));
    }
  }
  return bytes;
}

}  // namespace autograph
