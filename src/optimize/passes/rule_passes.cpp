// Passes that apply rules: what a model spells out and an op computes, and what changes nothing. What matches and what
// becomes of it stands in optimize/rules, family by family.
#include "optimize/passes/passes.h"
#include "optimize/passes/rule_pass.h"
#include "optimize/rules/families/families.h"

namespace autograph {
namespace {

// At each node the first rule that matches; needs_kernel: only where the device expects one for what it makes.
template <std::span<const Rule> (*kFamily)()>
bool apply_family(Graph& graph, const PassContext& context, const RulePassOptions& options = {}) {
  static const RulePass pass(kFamily(), options);
  return pass.run(graph, context);
}

}  // namespace

// Readers first: hard_swish before the hard_sigmoid inside it.
bool fuse_activations(Graph& graph, PassContext& context) {
  return apply_family<activation_rules>(graph, context, {.readers_first = true});
}

bool fuse_softmax(Graph& graph, PassContext& context) {
  return apply_family<softmax_rules>(graph, context, {.needs_kernel = true});
}

bool fuse_layer_norm(Graph& graph, PassContext& context) {
  return apply_family<layer_norm_rules>(graph, context, {.needs_kernel = true});
}

bool fuse_rms_norm(Graph& graph, PassContext& context) {
  return apply_family<rms_norm_rules>(graph, context, {.needs_kernel = true});
}

bool fuse_group_norm(Graph& graph, PassContext& context) {
  return apply_family<group_norm_rules>(graph, context, {.needs_kernel = true});
}

// Readers first: with the function behind the last convolution, where the device has a kernel for both.
bool fuse_squeeze_excite(Graph& graph, PassContext& context) {
  return apply_family<squeeze_excite_rules>(graph, context, {.readers_first = true, .needs_kernel = true});
}

bool simplify_arithmetic(Graph& graph, PassContext& context) {
  return apply_family<simplification_rules>(graph, context);
}

bool use_global_pool(Graph& graph, PassContext& context) { return apply_family<mean_rules>(graph, context); }

}  // namespace autograph
