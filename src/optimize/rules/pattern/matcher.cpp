// RuleMatcher: which statements of which rules a node can stand for, and what is found reported once.
#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "optimize/rules/pattern/match_attempt.h"

namespace autograph {
namespace {

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

RuleMatcher::RuleMatcher(std::span<const Rule* const> rules) : impl_(std::make_unique<Impl>(rules)) {}

RuleMatcher::~RuleMatcher() = default;

std::vector<RuleMatch> RuleMatcher::find_all(const Graph& graph) const {
  FoundMatches found;
  for (const NodeId node : graph.nodes()) {
    impl_->for_each_start(graph.node(node), [&](const Start& start) {
      const auto& rule = impl_->compiled()[start.rule];
      if (start.statement == rule->best_start) MatchAttempt(graph, rule, found).run(start.statement, node);
    });
  }
  return std::move(found.matches);
}

std::vector<RuleMatch> RuleMatcher::find_near(const Graph& graph, std::span<const NodeId> nodes) const {
  FoundMatches found;
  // Matches with a node that was looked at before have been found from there.
  std::vector<uint8_t> is_done(graph.node_capacity(), 0);
  for (const NodeId node : nodes) {
    if (!graph.is_live(node) || is_done[node.index]) continue;
    impl_->for_each_start(graph.node(node), [&](const Start& start) {
      MatchAttempt(graph, impl_->compiled()[start.rule], found, &is_done).run(start.statement, node);
    });
    is_done[node.index] = 1;
  }
  return std::move(found.matches);
}

std::vector<RuleMatch> RuleMatcher::find_at(const Graph& graph, NodeId node) const {
  FoundMatches found;
  impl_->for_each_start(graph.node(node), [&](const Start& start) {
    const auto& rule = impl_->compiled()[start.rule];
    if (start.statement + 1 == rule->before.statements.size()) {
      MatchAttempt(graph, rule, found).run(start.statement, node);
    }
  });
  return std::move(found.matches);
}

}  // namespace autograph
