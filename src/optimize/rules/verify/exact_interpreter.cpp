#include "optimize/rules/verify/exact_interpreter.h"

#include <unordered_map>

#include "base/check.h"
#include "graph/run_reference.h"
#include "optimize/rules/verify/exact_op.h"
#include "optimize/rules/verify/prime_field.h"

namespace autograph {
namespace {

bool is_float(const Type& type) { return dtypes::kFloat.contains(type.dtype()); }

ExactFn find_exact(std::string_view op) {
  for (const auto find : {find_exact_linear, find_exact_window, find_exact_elementwise, find_exact_row}) {
    if (const ExactFn function = find(op)) return function;
  }
  return nullptr;
}

// Moving elements of the field is what the op's own reference does with any other 8 bytes.
std::vector<Tensor> move_elements(const Node& node, std::span<const Tensor> inputs, const std::vector<Type>& types) {
  std::vector<Type> moved;
  for (const Type& type : types) moved.emplace_back(is_float(type) ? DType::u64 : type.dtype(), type.shape());
  return run_reference(node.op(), node.attributes(), inputs, moved);
}

// Integers from integers (and from shapes): shape arithmetic, as it is.
bool is_shape_arithmetic(const Node& node, std::span<const Type> types, const Graph& graph) {
  for (const Type& type : types) {
    if (is_float(type)) return false;
  }
  if (node.op().traits.reads_shape_only) return true;
  for (const ValueId input : node.inputs()) {
    if (input.is_valid() && is_float(graph.type(input))) return false;
  }
  return true;
}

std::vector<Tensor> run_node(const Graph& graph, const Node& node, std::span<const Tensor> inputs,
                             const ExactOptions& options) {
  const OpDef& op = node.op();
  std::vector<Type> types;
  for (const ValueId output : node.outputs()) {
    types.push_back(graph.type(output));
    AG_CHECK_USER(types.back().is_static() && !op.traits.control_flow, UnsupportedError,
                  "[exact] node: {} gives {}, which is no tensor of known shape", op.name, to_string(types.back()));
  }
  if (only_moves(op.name) || is_shape_arithmetic(node, types, graph)) return move_elements(node, inputs, types);
  std::vector<Tensor> outputs;
  for (const Type& type : types) outputs.push_back(Tensor::zeros(DType::u64, type.shape().static_dims()));
  const ExactCall call{op, node.attributes(), inputs, outputs, options};
  const ExactFn function = find_exact(op.name);
  (function ? function : call_opaque)(call);
  return outputs;
}

}  // namespace

Tensor to_exact(const Tensor& tensor) {
  if (!dtypes::kFloat.contains(tensor.dtype())) return tensor;
  const std::vector<double> values = tensor.to_f64();
  size_t next = 0;
  return make_exact(tensor.dims(), [&] { return field_of(static_cast<float>(values[next++])); });
}

std::vector<Tensor> run_exact(const Graph& graph, std::span<const Tensor> inputs, const ExactOptions& options) {
  AG_CHECK(inputs.size() == graph.inputs().size(), "{} inputs for {}", inputs.size(), graph.inputs().size());
  std::unordered_map<uint32_t, Tensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].index] = inputs[i];
  for (const ValueId id : graph.constants()) values[id.index] = to_exact(graph.value(id).constant());
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    std::vector<Tensor> arguments;
    for (const ValueId input : node.inputs()) arguments.push_back(input.is_valid() ? values.at(input.index) : Tensor());
    std::vector<Tensor> outputs = run_node(graph, node, arguments, options);
    for (size_t slot = 0; slot < outputs.size(); ++slot) values[node.outputs()[slot].index] = std::move(outputs[slot]);
  }
  std::vector<Tensor> results;
  for (const ValueId output : graph.outputs()) results.push_back(values.at(output.index));
  return results;
}

}  // namespace autograph
