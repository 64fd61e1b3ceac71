// MatchAttempt: all ways in which one rule matches with one statement at a given node. Works on arrays of its own and
// touches the heap only for what is found.
#pragma once

#include <array>
#include <memory>

#include "optimize/rules/pattern/compiled_rule.h"
#include "optimize/rules/pattern/match_formula.h"

namespace autograph {

/// Takes what an attempt finds.
class MatchSink {
 public:
  virtual ~MatchSink() = default;
  virtual void take(RuleMatch match) = 0;
};

class MatchAttempt : private FormulaVariables {
 public:
  /// Matches with a node that is marked in `left_out`, by number, are left out; null: none. No more than `max_tries`
  /// ways to match are tried in a run.
  MatchAttempt(const Graph& graph, std::shared_ptr<const CompiledRule> rule, MatchSink& sink,
               const std::vector<uint8_t>* left_out = nullptr, size_t max_tries = MatchLimits().max_tries);
  /// Hands every match in which statement `first` is `node`, and whose guard holds, to the sink.
  void run(size_t first, NodeId node);
  /// Ways to match that were tried.
  size_t num_tries() const { return num_tries_; }
  /// Does `match`, with its very nodes and values, hold in the graph?
  static bool holds(const Graph& graph, const RuleMatch& match);
  /// A hash of what the replacement of a rule without `build` computes from the values of the match.
  static uint64_t result_hash(const RuleMatch& match);

 private:
  const PatternStatement& statement(size_t index) const { return rule_->before.statements[index]; }
  bool is_statement(NodeId node) const;
  bool is_matched(NodeId node) const;
  bool may_stand_for(size_t index, NodeId node) const;
  void match_node(size_t index, NodeId node, size_t step);
  void match_step(size_t step);
  void match_inputs(size_t index, const Node& node, size_t step);
  void match_formula_at(size_t index, const Node& node, size_t step);
  bool fits(const Type& type) const;
  bool all_fit(std::span<const ValueId> values) const;
  bool bind(int variable, ValueId value);
  // FormulaVariables
  ValueId bound(uint32_t variable) const override { return values_[variable]; }
  bool bind(uint32_t variable, ValueId value) override { return bind(static_cast<int>(variable), value); }
  bool is_bound(ValueId value) const override;
  size_t num_bound() const override { return num_bound_; }
  void unbind_to(size_t mark) override;
  bool bind_inputs(size_t index, const Node& node, bool swapped);
  bool bind_operand(const PatternOperand& operand, ValueId input);
  bool bind_outputs(size_t index, const Node& node);
  void finish();
  bool is_legal() const;
  bool inner_values_die() const;
  bool lists_agree() const;
  bool ops_agree() const;
  bool weights_are_weights() const;
  bool read_attributes(std::vector<AttributeValue>& values) const;

  const Graph& graph_;
  std::shared_ptr<const CompiledRule> rule_;
  MatchSink& sink_;
  const std::vector<uint8_t>* left_out_;
  size_t max_tries_;
  size_t num_tries_ = 0;
  const std::vector<MatchStep>* steps_ = nullptr;
  std::array<NodeId, kMaxStatements> nodes_;
  std::array<ValueId, kMaxValues> values_;
  std::array<int, kMaxValues> trail_;  // variables in the order in which they were bound
  size_t num_bound_ = 0;
  FormulaFindings findings_;
};

}  // namespace autograph
