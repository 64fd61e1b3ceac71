#include "conformance/interpreter.h"

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "base/check.h"
#include "graph/infer_node.h"
#include "graph/nested/function_body.h"
#include "graph/run_reference.h"

namespace autograph::tests {
namespace {

Type type_of(const Datum& datum, const Type& declared) {
  if (datum.is_tensor()) return datum.tensor().type();
  return declared;
}

class Context : public EvaluateContext {
 public:
  Context(const Node& node, std::vector<Type> types, std::vector<Datum> inputs)
      : node_(node), types_(std::move(types)), inputs_(std::move(inputs)) {}
  const Attributes& attributes() const override { return node_.attributes(); }
  size_t num_inputs() const override { return inputs_.size(); }
  size_t num_outputs() const override { return node_.outputs().size(); }
  const Type& input_type(size_t slot) const override { return types_[slot]; }
  const Datum& input(size_t slot) const override {
    static const Datum nothing;
    return slot < inputs_.size() ? inputs_[slot] : nothing;
  }
  std::vector<Datum> run_nested(std::string_view attribute, const std::vector<Datum>& inputs) override {
    return interpret(*node_.attributes().get<GraphRef>(attribute), inputs);
  }
  Tensor allocate(DType dtype, Dims dims) override { return Tensor::empty(dtype, std::move(dims)); }

 private:
  const Node& node_;
  std::vector<Type> types_;
  std::vector<Datum> inputs_;
};

std::vector<Datum> run_decomposed(const Node& node, const std::vector<Type>& types, const std::vector<Datum>& inputs) {
  const FunctionBody body = body_of(node, types);
  std::vector<Datum> given;
  for (const size_t slot : body.inputs) given.push_back(inputs[slot]);
  return body.by_slot(interpret(body.graph, given), node.outputs().size());
}

std::vector<Datum> run_static(const Node& node, const std::vector<Type>& types, const std::vector<Datum>& inputs) {
  std::vector<Tensor> tensors(inputs.size());
  for (size_t slot = 0; slot < inputs.size(); ++slot) {
    if (inputs[slot].is_tensor()) tensors[slot] = inputs[slot].tensor();
  }
  const std::vector<Type> output_types =
      infer_call(node.op(), types, tensors, node.attributes(), node.outputs().size(), node.provenance().to_string());
  for (const Type& type : output_types) {
    AG_CHECK(type.is_static(), "[{}] infer gives {} for inputs that are all known", node.op().name, to_string(type));
  }
  const std::vector<Tensor> outputs = run_reference(node.op(), node.attributes(), tensors, output_types);
  return {outputs.begin(), outputs.end()};
}

std::vector<Datum> run_node(const Graph& graph, const Node& node, const std::vector<Datum>& values) {
  std::vector<Datum> inputs(node.inputs().size());
  std::vector<Type> types(inputs.size());
  for (size_t slot = 0; slot < inputs.size(); ++slot) {
    const ValueId input = node.inputs()[slot];
    if (!input.is_valid()) continue;
    inputs[slot] = values[input.index];
    types[slot] = type_of(inputs[slot], graph.type(input));
  }
  if (node.op().evaluate) {
    Context context(node, std::move(types), std::move(inputs));
    return node.op().evaluate(context);
  }
  if (node.op().reference || node.op().scalar) return run_static(node, types, inputs);
  return run_decomposed(node, types, inputs);
}

}  // namespace

std::vector<Datum> interpret(const Graph& graph, const std::vector<Datum>& inputs) {
  AG_CHECK_USER(inputs.size() == graph.inputs().size(), ValueError, "[run] inputs: expected {}, got {}",
                graph.inputs().size(), inputs.size());
  std::vector<Datum> values(graph.value_capacity());
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].index] = inputs[i];
  for (const ValueId constant : graph.constants()) values[constant.index] = graph.value(constant).constant();
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    std::vector<Datum> results = run_node(graph, node, values);
    AG_CHECK(results.size() >= node.outputs().size(), "[{}] expected {} outputs, got {}", node.op().name,
             node.outputs().size(), results.size());
    for (size_t slot = 0; slot < node.outputs().size(); ++slot) {
      values[node.outputs()[slot].index] = std::move(results[slot]);
    }
  }
  std::vector<Datum> outputs;
  for (const ValueId output : graph.outputs()) outputs.push_back(values[output.index]);
  return outputs;
}

}  // namespace autograph::tests
