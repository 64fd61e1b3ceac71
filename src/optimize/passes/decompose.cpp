// decompose: replaces function ops that nothing can run by their body in other ops.
//
// An op needs this when it has no formula, reference or evaluate of its own, unless the device has a kernel for it. The
// nodes of the body get the provenance of the node they replace. Bodies may use further function ops; a limit on the
// number of rounds stops definitions that go in circles.
#include <algorithm>
#include <string>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "base/check.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

constexpr int kMaxRounds = 32;

bool needs_body(const Graph& graph, NodeId id, const PassContext& context) {
  const OpDef& op = graph.node(id).op();
  if (!op.decompose || op.scalar || op.reference || op.evaluate) return false;
  return !context.has_kernel || !context.has_kernel(graph, id);
}

void replace_by_body(Graph& graph, NodeId id) {
  const OpDef& op = graph.node(id).op();
  const Provenance provenance = graph.node(id).provenance();
  const Attributes attributes = graph.node(id).attributes();
  const std::vector<ValueId> outputs = graph.node(id).outputs();
  DecomposeContext context{graph, attributes, {}, outputs.size()};
  for (const ValueId input : graph.node(id).inputs()) {
    context.inputs.push_back(input.is_valid() ? Var(graph, input) : Var());
  }
  // Bodies may ask for any input of the schema.
  context.inputs.resize(std::max(context.inputs.size(), op.inputs.size()));
  const size_t first_new = graph.node_capacity();
  const std::vector<Var> results = op.decompose(context);
  for (size_t n = first_new; n < graph.node_capacity(); ++n) {
    const NodeId added{static_cast<uint32_t>(n)};
    if (graph.is_live(added)) graph.set_provenance(added, provenance);
  }
  AG_CHECK(results.size() >= outputs.size(), "[{}] decompose gave {} values, expected {}", op.name, results.size(),
           outputs.size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    const bool used = !graph.value(outputs[k]).uses().empty() || graph.num_output_uses(outputs[k]) > 0;
    if (!used) continue;
    AG_CHECK(results[k].is_valid(), "[{}] decompose left out output {}, which is read", op.name, k);
    if (graph.value(results[k].id()).name().empty()) {
      graph.set_value_name(results[k].id(), graph.value(outputs[k]).name());
    }
    graph.replace_uses(outputs[k], results[k].id());
  }
  graph.erase_node(id);
}

}  // namespace

bool decompose(Graph& graph, PassContext& context) {
  bool changed = false;
  for (int round = 0; round < kMaxRounds; ++round) {
    bool found = false;
    for (const NodeId id : graph.nodes()) {
      if (!needs_body(graph, id, context)) continue;
      replace_by_body(graph, id);
      found = true;
    }
    if (!found) return changed;
    changed = true;
  }
  throw InternalError("[decompose] bodies: still function ops after " + std::to_string(kMaxRounds) + " rounds");
}

}  // namespace autograph
