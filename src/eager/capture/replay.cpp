#include "eager/capture/replay.h"

#include <algorithm>

#include "autograph/eager.h"
#include "base/check.h"
#include "eager/modes.h"
#include "graph/nested/function_body.h"

namespace autograph {
namespace {

// The body of a call, with constants for those inputs whose elements the call depends on.
std::shared_ptr<const Graph> make_body(const PreparedCall& call, std::span<const Var> inputs) {
  auto body = std::make_shared<Graph>(std::string(call.name));
  DecomposeContext context{*body, call.attributes, {}, call.output_types.size()};
  for (size_t slot = 0; slot < inputs.size(); ++slot) {
    if (!inputs[slot].is_valid()) {
      context.inputs.emplace_back();
      body->add_input(Type());
      continue;
    }
    const ValueId input = body->add_input(inputs[slot].type());
    const auto& known = call.value_slots();
    const bool is_known = std::find(known.begin(), known.end(), slot) != known.end();
    context.inputs.push_back(is_known ? constant(*body, elements(inputs[slot])) : Var(*body, input));
  }
  const std::vector<Var> results = add_body(*call.op, context);
  for (size_t k = 0; k < call.output_types.size(); ++k) {
    AG_CHECK(k < results.size() && results[k].is_valid(), "[{}] decompose left out output {}", call.name, k);
    body->add_output(results[k].id());
  }
  return body;
}

}  // namespace

std::vector<Var> replay(const Graph& graph, std::span<const Var> inputs) {
  AG_CHECK(inputs.size() == graph.inputs().size(), "expected {} inputs, got {}", graph.inputs().size(), inputs.size());
  std::vector<Var> values(graph.value_capacity());
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].index] = inputs[i];
  for (const ValueId id : graph.constants()) values[id.index] = eager(graph.value(id).constant());
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    std::vector<Var> operands;
    for (const ValueId input : node.inputs()) operands.push_back(input.is_valid() ? values[input.index] : Var());
    Var any;
    for (const Var& operand : operands) any = operand.is_valid() ? operand : any;
    if (!any.is_valid()) any = inputs.empty() ? eager(Tensor::scalar<int64_t>(0)) : inputs[0];
    const std::vector<Var> outputs =
        any.eager().apply(node.op(), operands, node.attributes(), static_cast<int>(node.outputs().size()));
    for (size_t k = 0; k < outputs.size(); ++k) values[node.output(k).index] = outputs[k];
  }
  std::vector<Var> outputs;
  for (const ValueId id : graph.outputs()) outputs.push_back(values[id.index]);
  return outputs;
}

std::vector<Var> replay_body(PreparedCall& call, std::span<const Var> inputs) {
  const RecordScope records(modes().records && call.op->no_grad.empty());
  if (!call.body) call.body = make_body(call, inputs);
  return replay(*call.body, inputs);
}

}  // namespace autograph
