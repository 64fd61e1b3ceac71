#include "prove/verify/exact/exact_interpreter.h"

#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "graph/infer_node.h"
#include "graph/run_reference.h"
#include "prove/verify/exact/exact_op.h"
#include "prove/verify/exact/prime_field.h"

namespace autograph {
namespace {

bool is_float(const Type& type) { return dtypes::kFloat.contains(type.dtype()); }

ExactFn find_exact(const OpDef& op) {
  for (const auto find : {find_exact_linear, find_exact_window, find_exact_elementwise, find_exact_row}) {
    if (const ExactFn function = find(op)) return function;
  }
  return nullptr;
}

// Moving elements of the field is what the op's own reference does with any other 8 bytes.
std::vector<Tensor> move_elements(const OpDef& op, const Attributes& attributes, std::span<const Tensor> inputs,
                                  const std::vector<Type>& types) {
  std::vector<Type> moved;
  for (const Type& type : types) moved.emplace_back(is_float(type) ? DType::u64 : type.dtype(), type.shape());
  return run_reference(op, attributes, inputs, moved);
}

// Integers from integers (and from shapes): shape arithmetic, as it is.
bool is_shape_arithmetic(const OpDef& op, std::span<const Tensor> inputs, std::span<const Type> types) {
  if (std::any_of(types.begin(), types.end(), is_float)) return false;
  return op.traits.reads_shape_only ||
         std::none_of(inputs.begin(), inputs.end(), [](const Tensor& input) { return input.dtype() == DType::u64; });
}

std::vector<Tensor> call_exact(const OpDef& op, const Attributes& attributes, std::span<const Tensor> inputs,
                               const std::vector<Type>& types, const ExactOptions& options) {
  for (const Type& type : types) {
    AG_CHECK_USER(type.is_static() && !op.traits.control_flow, UnsupportedError,
                  "[exact] node: {} gives {}, which is no tensor of known shape", op.name, to_string(type));
  }
  if (op.traits.moves || is_shape_arithmetic(op, inputs, types)) return move_elements(op, attributes, inputs, types);
  std::vector<Tensor> outputs;
  for (const Type& type : types) outputs.push_back(Tensor::zeros(DType::u64, type.shape().static_dims()));
  const ExactCall call{op, attributes, inputs, outputs, options};
  const ExactFn function = find_exact(op);
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
    std::vector<Type> types;
    for (const ValueId output : node.outputs()) types.push_back(graph.type(output));
    std::vector<Tensor> outputs = call_exact(node.op(), node.attributes(), arguments, types, options);
    for (size_t slot = 0; slot < outputs.size(); ++slot) values[node.outputs()[slot].index] = std::move(outputs[slot]);
  }
  std::vector<Tensor> results;
  for (const ValueId output : graph.outputs()) results.push_back(values.at(output.index));
  return results;
}

std::vector<Tensor> run_exact_call(const OpDef& op, const Attributes& attributes, std::span<const Tensor> inputs,
                                   size_t num_outputs, const ExactOptions& options) {
  std::vector<Type> input_types;
  for (const Tensor& input : inputs) {
    const bool field = input.dtype() == DType::u64;
    input_types.emplace_back(field ? DType::f32 : input.dtype(), Shape::of(input.dims()));
  }
  const std::vector<Type> types = infer_call(op, std::move(input_types), {}, attributes, num_outputs, "");
  return call_exact(op, attributes, inputs, types, options);
}

}  // namespace autograph
