// apply_before_concat: an elementwise function of a whole that was put together is applied to its parts, where each
// part has it for nothing.
//
//   relu(concat(conv(x), add(y, z), p)), relu(p)    becomes    concat(relu(conv(x)), relu(add(y, z)), relu(p)), relu(p)
//
// So the cells of NASNet begin: as written, a step reads and writes all that a cell has made once more. A part has the
// function for nothing where it is made here alone by an op that others may follow in one kernel, or where the function
// of it is computed already. If one part has neither, the graph stays as it is.
#include <algorithm>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"
#include "optimize/rules/pattern/compiled_rule.h"
#include "optimize/rules/siblings.h"

namespace autograph {
namespace {

// The node that computes of `part` what `function` computes; invalid when there is none.
NodeId function_of(const Graph& graph, ValueId part, const Node& function) {
  for (const Use& use : graph.value(part).uses()) {
    const Node& node = graph.node(use.node);
    if (is_in_class(OpClass::unary, node) && same_op(node, function)) return use.node;
  }
  return {};
}

bool has_for_nothing(const Graph& graph, ValueId part, const Node& function) {
  if (!graph.type(part).is_static()) return false;
  if (function_of(graph, part, function).is_valid()) return true;
  const NodeId maker = graph.value(part).producer();
  if (num_reads(graph, part) != 1 || !maker.is_valid()) return false;
  const OpDef& op = graph.node(maker).op();
  return graph.node(maker).outputs().size() == 1 && (op.traits.anchor || op.traits.elementwise);
}

bool apply_before(Graph& graph, NodeId id) {
  const Node& function = graph.node(id);
  if (!is_in_class(OpClass::unary, function)) return false;
  const Node* concat = made_once_by(graph, function.input(0), concat_def());
  if (!concat || concat->inputs().size() < 2) return false;
  const std::vector<ValueId> parts = concat->inputs();
  const auto has_function = [&](ValueId part) { return has_for_nothing(graph, part, function); };
  if (!std::all_of(parts.begin(), parts.end(), has_function)) return false;
  const Attributes joining = concat->attributes();
  const NodeOptions origins{Provenance::merged(concat->provenance(), function.provenance()), 1};
  std::vector<ValueId> results;
  for (const ValueId part : parts) {
    const Node& f = graph.node(id);
    NodeId applied = function_of(graph, part, f);
    if (!applied.is_valid()) applied = graph.add_node(f.op(), {part}, Attributes(f.attributes()), origins);
    results.push_back(graph.node(applied).output(0));
  }
  const NodeId joined = graph.add_node(concat_def(), results, joining, origins);
  replace_pattern(graph, graph.node(id).output(0), graph.node(joined).output(0));
  return true;
}

}  // namespace

bool apply_before_concat(Graph& graph, PassContext&) {
  return rewrite_nodes(graph, [&](NodeId id) { return apply_before(graph, id); });
}

}  // namespace autograph
