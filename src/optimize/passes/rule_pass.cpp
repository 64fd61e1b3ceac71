#include "optimize/passes/rule_pass.h"

#include <algorithm>

namespace autograph {
namespace {

std::vector<const Rule*> pointers(std::span<const Rule> rules) {
  std::vector<const Rule*> list;
  for (const Rule& rule : rules) list.push_back(&rule);
  return list;
}

}  // namespace

RulePass::RulePass(std::span<const Rule> rules, const RulePassOptions& options)
    : matcher_(pointers(rules)), options_(options) {}

bool RulePass::apply_at(Graph& graph, const PassContext& context, NodeId node,
                        std::span<const uint8_t> candidates) const {
  const auto accepts = [&](const Graph& changed, std::span<const NodeId> added) {
    return !options_.needs_kernel || std::all_of(added.begin(), added.end(), [&](NodeId id) {
      return context.expects_kernel && context.expects_kernel(changed, id);
    });
  };
  const AcceptsNodes accepts_nodes(accepts);
  for (const RuleMatch& match : matcher_.find_at(graph, node, candidates)) {
    if (apply_rule(graph, match, &accepts_nodes)) return true;
  }
  return false;
}

bool RulePass::run(Graph& graph, const PassContext& context) const {
  const auto is_any = [](const std::vector<uint8_t>& list) { return std::count(list.begin(), list.end(), 1) > 0; };
  std::vector<uint8_t> candidates = matcher_.find_candidates(graph);
  if (!is_any(candidates)) return false;
  bool changed = false;
  std::vector<NodeId> order = graph.topological_order();
  if (options_.readers_first) std::reverse(order.begin(), order.end());
  for (const NodeId node : order) {
    if (!graph.is_live(node) || !apply_at(graph, context, node, candidates)) continue;
    changed = true;
    candidates = matcher_.find_candidates(graph);  // with the ops that came
  }
  return changed;
}

}  // namespace autograph
