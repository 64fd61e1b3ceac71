#include "support/graphs/sample_graph.h"

namespace autograph {

Type type_of_datum(const Datum& datum) {
  if (datum.is_tensor()) return datum.tensor().type();
  if (!datum.is_sequence()) return {};
  Type element(DType::f32, Shape::unknown());
  if (!datum.sequence().empty()) {
    const Type first = type_of_datum(datum.sequence().front());
    element = first.is_tensor() ? Type(first.dtype(), Shape::unknown()) : first;
  }
  return Type::sequence(std::move(element));
}

bool is_shape_like(const Datum& datum) {
  if (!datum.is_tensor()) return false;
  const Tensor& tensor = datum.tensor();
  return dtypes::kIndex.contains(tensor.dtype()) && tensor.rank() <= 1 && tensor.num_elements() <= 16;
}

TestGraph make_sample_graph(const OpDef& op, const OpSample& sample, bool all_inputs, bool constant_weights) {
  TestGraph result;
  std::vector<ValueId> inputs;
  for (const Datum& datum : sample.inputs) {
    if (!datum.is_present()) {
      inputs.emplace_back();
    } else if ((is_shape_like(datum) && !all_inputs) || (constant_weights && datum.is_tensor() && !inputs.empty())) {
      inputs.push_back(result.graph.add_constant(datum.tensor()));
    } else {
      inputs.push_back(result.graph.add_input(type_of_datum(datum), "x" + std::to_string(inputs.size())));
      result.inputs.push_back(datum);
    }
  }
  while (!inputs.empty() && !inputs.back().is_valid()) inputs.pop_back();
  NodeOptions options;
  options.num_outputs = sample.num_outputs;
  options.provenance = Provenance::named("sample");
  const NodeId node = result.graph.add_node(op, std::move(inputs), sample.attributes, std::move(options));
  for (const ValueId output : result.graph.node(node).outputs()) result.graph.add_output(output);
  return result;
}

}  // namespace autograph
