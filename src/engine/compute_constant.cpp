#include "engine/compute_constant.h"

#include <algorithm>

#include "autograph/graph.h"
#include "graph/run_reference.h"

namespace autograph {
namespace {

// Below this the reference is done before a kernel is made.
constexpr double kManyFlops = 1e7;

bool is_worth_a_kernel(const OpDef& op, const Attributes& attributes, std::span<const Tensor> inputs,
                       std::span<const Type> output_types) {
  if (!op.traits.anchor) return false;
  std::vector<Type> types;
  for (const Tensor& tensor : inputs) {
    // Other types have kernels that round otherwise, or none.
    if (!tensor.raw() || tensor.dtype() != DType::f32) return false;
    types.push_back(tensor.type());
  }
  return cost_of(op, {attributes, types, output_types}).flops >= kManyFlops;
}

}  // namespace

std::vector<Tensor> compute_constant(const Device& device, const CompileOptions& options, const OpDef& op,
                                     const Attributes& attributes, std::span<const Tensor> inputs,
                                     std::span<const Type> output_types) {
  if (device.properties().is_reference || !is_worth_a_kernel(op, attributes, inputs, output_types)) {
    return run_reference(op, attributes, inputs, output_types);
  }
  Graph graph("constant");
  std::vector<ValueId> values;
  std::vector<Datum> data;
  for (const Tensor& tensor : inputs) {
    values.push_back(graph.add_input(tensor.type()));
    data.emplace_back(tensor);
  }
  const NodeId node = graph.add_node(op, std::move(values), attributes);
  for (const ValueId v : std::vector<ValueId>(graph.node(node).outputs())) graph.add_output(v);
  CompileOptions plain;
  plain.device = options.device;
  plain.threads = options.threads;
  plain.exact = options.exact;
  plain.expert.use_passes = false;
  std::vector<Tensor> results;
  for (const Datum& datum : compile(std::move(graph), plain).run(data)) results.push_back(datum.tensor());
  return results;
}

}  // namespace autograph
