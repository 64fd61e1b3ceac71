// decompose: replaces function ops that nothing can run by their body in other ops.
//
// An op needs this when it has no formula, reference or evaluate of its own, unless the device has a kernel for it (or,
// while extents are open, will probably have one: the pass runs again once they are known). The
// nodes of the body get the provenance of the node they replace. Bodies may use further function ops; a limit on the
// number of rounds stops definitions that go in circles.
#include <algorithm>
#include <string>

#include "autograph/op_def.h"
#include "graph/nested/replace_by_body.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

constexpr int kMaxRounds = 32;

bool needs_body(const Graph& graph, NodeId id, const PassContext& context) {
  const OpDef& op = graph.node(id).op();
  if (!op.decompose || op.scalar || op.reference || op.evaluate) return false;
  const auto is_open = [&](ValueId v) {
    return v.is_valid() && graph.type(v).is_tensor() && !graph.type(v).is_static();
  };
  // Of extents that are not known yet typical ones count: once they are known, this pass runs again.
  const bool is_final = std::none_of(graph.node(id).inputs().begin(), graph.node(id).inputs().end(), is_open);
  const auto& has_kernel = is_final ? context.has_kernel : context.expects_kernel;
  return !has_kernel || !has_kernel(graph, id);
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
