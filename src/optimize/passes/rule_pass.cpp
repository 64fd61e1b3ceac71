#include "optimize/passes/rule_pass.h"

#include <algorithm>
#include <unordered_set>

namespace autograph {
namespace {

std::vector<const Rule*> pointers(std::span<const Rule> rules) {
  std::vector<const Rule*> list;
  for (const Rule& rule : rules) list.push_back(&rule);
  return list;
}

// The ops that a graph has or had: of those that came the new nodes tell, whose numbers follow the others.
class OpsOfGraph {
 public:
  // Did nodes come with ops that there were none of? Looks at each node once.
  bool follow(const Graph& graph) {
    const size_t before = ops_.size();
    for (; next_ < graph.node_capacity(); ++next_) {
      if (graph.is_live(NodeId{next_})) ops_.insert(&graph.node(NodeId{next_}).op());
    }
    return ops_.size() > before;
  }
  const std::unordered_set<const OpDef*>& ops() const { return ops_; }

 private:
  std::unordered_set<const OpDef*> ops_;
  uint32_t next_ = 0;
};

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
  OpsOfGraph known;
  known.follow(graph);
  std::vector<uint8_t> candidates = matcher_.find_candidates(known.ops());
  if (!is_any(candidates)) return false;
  bool changed = false;
  std::vector<NodeId> order = graph.topological_order();
  if (options_.readers_first) std::reverse(order.begin(), order.end());
  for (const NodeId node : order) {
    if (!graph.is_live(node) || !apply_at(graph, context, node, candidates)) continue;
    changed = true;
    if (known.follow(graph)) candidates = matcher_.find_candidates(known.ops());
  }
  return changed;
}

}  // namespace autograph
