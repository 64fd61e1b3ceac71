// What a gradient rule sees of a backward pass.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/reverse.h"

namespace autograph {

/// As VjpContext::vjp_of(), of a nested graph. What the last `num_shared` outputs of `body` are is not computed again:
/// these are the last inputs, so that gradients of the result flow to them.
Graph gradient_of_body(const Graph& body, const std::vector<bool>& wanted, const std::vector<bool>& given,
                       size_t num_shared = 0);

/// What visits in graphs and on tapes (eager/tape/tape_rule.h) share: which gradients of inputs the rule has set.
class RuleVisit : public VjpContext {
 public:
  explicit RuleVisit(size_t num_inputs) : is_set_(num_inputs, 0) {}
  void set_none(size_t slot) override;
  Graph vjp_of(const Graph& body, const std::vector<bool>& wanted, const std::vector<bool>& given) override;

  /// Throws UnsupportedError when the rule has forgotten an input that is wanted.
  void check_all_set() const;
  /// Has the rule set the gradient of an input, or said that it has none?
  bool has_set_any() const { return std::find(is_set_.begin(), is_set_.end(), 1) != is_set_.end(); }

 protected:
  std::string input_name(size_t slot) const;

  std::vector<char> is_set_;  // by input
};

/// One visit of a node. Copies what it tells of the node: rules add nodes, which moves those of the graph.
class RuleContext final : public RuleVisit {
 public:
  RuleContext(Reverse& pass, NodeId node);

  Graph& graph() override { return pass_.graph_; }
  const OpDef& op() const override { return *op_; }
  const Attributes& attributes() const override { return attributes_; }
  size_t num_inputs() const override { return inputs_.size(); }
  size_t num_outputs() const override { return outputs_.size(); }
  bool has_input(size_t slot) const override { return slot < inputs_.size() && inputs_[slot].is_valid(); }
  bool wants(size_t slot) const override { return has_input(slot) && pass_.is_active(inputs_[slot]); }
  Var in(size_t slot) override { return has_input(slot) ? Var(graph(), inputs_[slot]) : Var(); }
  Var out(size_t slot) override { return Var(graph(), outputs_[slot]); }
  bool has_gy(size_t slot) const override { return slot < gradients_.size() && gradients_[slot].is_valid(); }
  Var gy(size_t slot) override;
  std::optional<std::vector<int64_t>> known_integers(size_t slot) const override;
  std::vector<int64_t> integers(size_t slot) const override;
  void set(size_t slot, const Var& gradient) override;
  std::vector<Var> with_outputs(int count) override;
  [[noreturn]] void unsupported(std::string_view detail) const override;
  Var so_far(size_t slot) override;
  void set_total(size_t slot, const Var& gradient) override { set(slot, gradient); }

 private:
  Reverse& pass_;
  NodeId node_;
  const OpDef* op_;
  Attributes attributes_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::vector<ValueId> gradients_;  // of the outputs
};

}  // namespace autograph
