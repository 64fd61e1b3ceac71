#include "graph/nested/function_body.h"

#include <algorithm>

#include "base/check.h"

namespace autograph {

std::vector<Var> add_body(const OpDef& op, DecomposeContext& context) {
  AG_CHECK(op.decompose, "[{}] has neither a reference nor a body", op.name);
  context.inputs.resize(std::max(context.inputs.size(), op.inputs.size()));
  return op.decompose(context);
}

FunctionBody body_of(const Node& node, const std::vector<Type>& types) {
  FunctionBody body;
  DecomposeContext context{body.graph, node.attributes(), {}, node.outputs().size()};
  for (size_t slot = 0; slot < types.size(); ++slot) {
    if (types[slot].kind() == Type::Kind::none) {
      context.inputs.emplace_back();
      continue;
    }
    context.inputs.emplace_back(body.graph, body.graph.add_input(types[slot]));
    body.inputs.push_back(slot);
  }
  const std::vector<Var> outputs = add_body(node.op(), context);
  for (size_t slot = 0; slot < outputs.size(); ++slot) {
    if (!outputs[slot].is_valid()) continue;
    body.graph.add_output(outputs[slot].id());
    body.outputs.push_back(slot);
  }
  return body;
}

}  // namespace autograph
