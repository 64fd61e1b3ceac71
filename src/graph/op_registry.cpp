// Look-up in the table of ops. The table itself is generated from the op sources (ops/op_table.cpp), one layer up.
#include <algorithm>
#include <vector>

#include "autograph/op_def.h"
#include "base/check.h"
#include "base/did_you_mean.h"

namespace autograph {

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

OpCost cost_of(const OpDef& op, const CostContext& context) {
  if (op.cost) return op.cost(context);
  OpCost cost;
  const auto add_bytes = [&cost](const Type& type) {
    if (!type.is_static()) return 0.0;
    const auto elements = static_cast<double>(*type.shape().num_elements());
    cost.bytes += elements * static_cast<double>(element_size(type.dtype()));
    return elements;
  };
  for (const Type& type : context.inputs) add_bytes(type);
  for (const Type& type : context.outputs) cost.flops += add_bytes(type);
  if (op.traits.view) cost = {};
  return cost;
}

}  // namespace autograph
