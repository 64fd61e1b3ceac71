#include "autodiff/double_graph.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "autograph/error.h"
#include "autograph/op_def.h"
#include "graph/schema.h"
#include "ops/defs.h"

namespace autograph {
namespace {

bool is_narrow(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

Type in_double(const Type& type) {
  return type.is_tensor() && is_narrow(type.dtype()) ? Type(DType::f64, type.shape()) : type;
}

Tensor in_double(const Tensor& tensor) {
  return is_narrow(tensor.dtype()) ? Tensor::of<double>(tensor.dims(), tensor.to_f64()) : tensor;
}

// Every attribute that says a dtype, or has elements of one, says f64.
Attributes in_double(const OpDef& op, const Attributes& attributes) {
  Attributes result = attributes;
  for (const AttributeSpec& spec : op.attributes) {
    const AttributeValue* value = attributes.find(spec.name);
    if (!value && spec.default_value) value = &*spec.default_value;
    if (!value) continue;
    if (const auto* dtype = std::get_if<DType>(value); dtype && is_narrow(*dtype)) result.set(spec.name, DType::f64);
    if (const auto* tensor = std::get_if<Tensor>(value)) result.set(spec.name, in_double(*tensor));
    if (const auto* nested = std::get_if<GraphRef>(value)) {
      result.set(spec.name, std::make_shared<const Graph>(in_double(**nested)));
    }
  }
  return result;
}

bool takes_double(const OpDef& op, size_t slot) {
  const Param* param = find_param(op.inputs, slot);
  const auto types = std::find_if(op.types.begin(), op.types.end(),
                                  [&](const TypeVar& type) { return param && type.name == param->type_var; });
  return types == op.types.end() || types->allowed.contains(DType::f64);
}

// Copies one graph.
class Copy {
 public:
  explicit Copy(const Graph& from) : from_(from), to_(from.name()), copy_of_(from.value_capacity()) {}

  Graph make() {
    for (const ValueId v : from_.inputs()) {
      copy_of_[v.index] = to_.add_input(in_double(from_.type(v)), from_.value(v).name());
    }
    for (const ValueId v : from_.constants()) {
      copy_of_[v.index] = to_.add_constant(in_double(from_.value(v).constant()), from_.value(v).name());
    }
    for (const NodeId id : from_.topological_order()) copy(from_.node(id));
    for (size_t k = 0; k < from_.outputs().size(); ++k) {
      to_.add_output(copy_of_[from_.outputs()[k].index], from_.output_name(k));
    }
    return std::move(to_);
  }

 private:
  ValueId cast(ValueId v, DType dtype, const Provenance& provenance) {
    if (!to_.type(v).is_tensor() || to_.type(v).dtype() == dtype) return v;
    return to_.node(to_.add_node(cast_def(), {v}, {{"to", dtype}}, {provenance, 1})).output(0);
  }

  // Settings that are f32 in every call (the scales of a resize) stay what they are: rules want to see constants.
  ValueId input_of(const Node& node, size_t slot) {
    const ValueId from = node.input(slot);
    if (!from.is_valid()) return {};
    const ValueId wide = copy_of_[from.index];
    if (!from_.type(from).is_tensor() || !is_narrow(from_.type(from).dtype()) || takes_double(node.op(), slot)) {
      return wide;
    }
    const Value& value = from_.value(from);
    return value.is_constant() ? to_.add_constant(value.constant())
                               : cast(wide, value.type().dtype(), node.provenance());
  }

  // As the op computes without this file.
  NodeId copy_between_casts(const Node& node, std::vector<ValueId> inputs, const NodeOptions& options) {
    for (size_t slot = 0; slot < inputs.size(); ++slot) {
      if (!inputs[slot].is_valid() || !from_.type(node.input(slot)).is_tensor()) continue;
      inputs[slot] = cast(inputs[slot], from_.type(node.input(slot)).dtype(), node.provenance());
    }
    return to_.add_node(node.op(), std::move(inputs), node.attributes(), options);
  }

  void copy(const Node& node) {
    std::vector<ValueId> inputs;
    for (size_t slot = 0; slot < node.inputs().size(); ++slot) inputs.push_back(input_of(node, slot));
    const NodeOptions options{node.provenance(), static_cast<int>(node.outputs().size())};
    NodeId copied;
    try {
      copied = to_.add_node(node.op(), inputs, in_double(node.op(), node.attributes()), options);
    } catch (const UserError&) {
      copied = copy_between_casts(node, inputs, options);
    }
    for (size_t k = 0; k < node.outputs().size(); ++k) {
      const ValueId output = to_.node(copied).output(k);
      const Type& type = to_.type(output);
      const bool is_float = type.is_tensor() && is_narrow(type.dtype());
      copy_of_[node.output(k).index] = is_float ? cast(output, DType::f64, node.provenance()) : output;
    }
  }

  const Graph& from_;
  Graph to_;
  std::vector<ValueId> copy_of_;
};

}  // namespace

Graph in_double(const Graph& graph) {
  if (graph.states().empty()) return Copy(graph).make();
  Graph frozen = graph;
  frozen.freeze();
  return Copy(frozen).make();
}

Datum in_double(const Datum& value) { return value.is_tensor() ? Datum(in_double(value.tensor())) : value; }

}  // namespace autograph
