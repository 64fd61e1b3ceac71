// Passes that make one node of what a model spells out. The formulas are rules, family by family in optimize/rules.
#include "optimize/passes/passes.h"
#include "optimize/passes/rule_pass.h"
#include "optimize/rules/families.h"

namespace autograph {

// Readers first: hard_swish before the hard_sigmoid inside it.
bool fuse_activations(Graph& graph, PassContext& context) {
  static const RulePass pass(activation_rules(), {.readers_first = true});
  return pass.run(graph, context);
}

bool fuse_softmax(Graph& graph, PassContext& context) {
  static const RulePass pass(softmax_rules(), {.needs_kernel = true});
  return pass.run(graph, context);
}

bool fuse_layer_norm(Graph& graph, PassContext& context) {
  static const RulePass pass(layer_norm_rules(), {.needs_kernel = true});
  return pass.run(graph, context);
}

bool fuse_rms_norm(Graph& graph, PassContext& context) {
  static const RulePass pass(rms_norm_rules(), {.needs_kernel = true});
  return pass.run(graph, context);
}

}  // namespace autograph
