// RuleMatcher: which statements of which rules a node can stand for, and what is found reported once.
#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "optimize/rules/pattern/ancestry.h"
#include "optimize/rules/pattern/match_attempt.h"

namespace autograph {
namespace {

// Whether to stop is asked once in so many nodes.
constexpr size_t kNodesPerLook = 16;

// A statement of a rule.
struct Start {
  uint32_t rule;
  uint32_t statement;
};

}  // namespace

class RuleMatcher::Impl {
 public:
  explicit Impl(std::span<const Rule* const> rules) {
    for (const Rule* rule : rules) {
      compiled_.push_back(std::make_shared<const CompiledRule>(*rule));
      for (size_t s = 0; s < compiled_.back()->before.statements.size(); ++s) add_start(s);
    }
  }

  const std::vector<std::shared_ptr<const CompiledRule>>& compiled() const { return compiled_; }

  // Calls visit(start) for all statements that `node` can stand for.
  template <class Visit>
  void for_each_start(const Node& node, Visit&& visit) const {
    const auto it = by_op_.find(&node.op());
    if (it != by_op_.end()) {
      for (const Start& start : it->second) visit(start);
    }
    if (is_in_class(OpClass::unary, node)) {
      for (const Start& start : unary_) visit(start);
    }
    if (is_in_class(OpClass::binary, node)) {
      for (const Start& start : binary_) visit(start);
    }
  }

 private:
  void add_start(size_t statement) {
    const PatternStatement& s = compiled_.back()->before.statements[statement];
    const Start start{static_cast<uint32_t>(compiled_.size() - 1), static_cast<uint32_t>(statement)};
    if (s.formula) {
      for (const OpDef* op : s.formula->root_ops) by_op_[op].push_back(start);
    } else if (s.op) {
      by_op_[s.op].push_back(start);
    } else {
      (s.op_class == OpClass::unary ? unary_ : binary_).push_back(start);
    }
  }

  std::vector<std::shared_ptr<const CompiledRule>> compiled_;
  std::unordered_map<const OpDef*, std::vector<Start>> by_op_;
  std::vector<Start> unary_;
  std::vector<Start> binary_;
};

// Keeps what is new: see RuleMatcher::find_all.
class FoundMatches : public MatchSink {
 public:
  void take(RuleMatch match) override;
  std::vector<RuleMatch> matches;

 private:
  std::unordered_map<uint64_t, std::vector<size_t>> by_nodes_;
  std::vector<uint64_t> results_;  // parallel to matches
};

void FoundMatches::take(RuleMatch match) {
  std::vector<NodeId> nodes = match.nodes();
  std::sort(nodes.begin(), nodes.end());
  uint64_t key = reinterpret_cast<uintptr_t>(&match.rule());
  for (const NodeId node : nodes) key = mixed(key, node.index);
  const uint64_t result = match.rule().build ? 0 : MatchAttempt::result_hash(match);
  std::vector<size_t>& known = by_nodes_[key];
  for (const size_t index : known) {
    const RuleMatch& other = matches[index];
    if (&other.rule() != &match.rule()) continue;
    if (other.nodes() == match.nodes()) {
      if (results_[index] == result) return;
      continue;
    }
    std::vector<NodeId> others = other.nodes();
    std::sort(others.begin(), others.end());
    if (others == nodes) return;
  }
  known.push_back(matches.size());
  results_.push_back(result);
  matches.push_back(std::move(match));
}

// One look at a graph from many nodes, within limits.
class MatchRound {
 public:
  MatchRound(const Graph& graph, const MatchLimits& limits) : graph_(graph), limits_(limits), scope_(graph) {}

  // To be asked once for each node.
  bool should_stop() { return ++num_looked_at_ % kNodesPerLook == 0 && limits_.should_stop && limits_.should_stop(); }
  void try_from(const std::shared_ptr<const CompiledRule>& rule, size_t statement, NodeId node,
                const std::vector<uint8_t>* left_out) {
    MatchAttempt attempt(graph_, rule, found_, left_out, limits_.max_tries);
    attempt.run(statement, node);
    num_tries_ += attempt.num_tries();
  }
  std::vector<RuleMatch> take() {
    if (limits_.work) {
      limits_.work->tries += num_tries_;
      limits_.work->walked += scope_.num_walked();
    }
    return std::move(found_.matches);
  }

 private:
  const Graph& graph_;
  const MatchLimits& limits_;
  const AncestryScope scope_;  // guards ask about many pairs
  FoundMatches found_;
  size_t num_looked_at_ = 0;
  size_t num_tries_ = 0;
};

RuleMatcher::RuleMatcher(std::span<const Rule* const> rules) : impl_(std::make_unique<Impl>(rules)) {}

RuleMatcher::~RuleMatcher() = default;

std::vector<RuleMatch> RuleMatcher::find_all(const Graph& graph, const MatchLimits& limits) const {
  MatchRound round(graph, limits);
  for (const NodeId node : graph.nodes()) {
    if (round.should_stop()) break;
    impl_->for_each_start(graph.node(node), [&](const Start& start) {
      const auto& rule = impl_->compiled()[start.rule];
      if (start.statement == rule->best_start) round.try_from(rule, start.statement, node, nullptr);
    });
  }
  return round.take();
}

std::vector<RuleMatch> RuleMatcher::find_near(const Graph& graph, std::span<const NodeId> nodes,
                                              const MatchLimits& limits) const {
  MatchRound round(graph, limits);
  // Matches with a node that was looked at before have been found from there.
  std::vector<uint8_t> is_done(graph.node_capacity(), 0);
  for (const NodeId node : nodes) {
    if (!graph.is_live(node) || is_done[node.index]) continue;
    if (round.should_stop()) break;
    impl_->for_each_start(graph.node(node), [&](const Start& start) {
      round.try_from(impl_->compiled()[start.rule], start.statement, node, &is_done);
    });
    is_done[node.index] = 1;
  }
  return round.take();
}

std::vector<uint8_t> RuleMatcher::find_candidates(const std::unordered_set<const OpDef*>& ops) const {
  std::vector<uint8_t> candidates;
  for (const auto& rule : impl_->compiled()) {
    candidates.push_back(
        std::all_of(rule->needs.begin(), rule->needs.end(), [&](const OpDef* op) { return ops.contains(op); }));
  }
  return candidates;
}

std::vector<RuleMatch> RuleMatcher::find_at(const Graph& graph, NodeId node,
                                            std::span<const uint8_t> candidates) const {
  FoundMatches found;
  impl_->for_each_start(graph.node(node), [&](const Start& start) {
    if (!candidates.empty() && !candidates[start.rule]) return;
    const auto& rule = impl_->compiled()[start.rule];
    if (start.statement + 1 == rule->before.statements.size()) {
      MatchAttempt(graph, rule, found).run(start.statement, node);
    }
  });
  return std::move(found.matches);
}

}  // namespace autograph
