// What a gradient rule sees of a backward pass over the tape.
#pragma once

#include <string_view>
#include <vector>

#include "autodiff/rule_context.h"
#include "eager/tape/tape_pass.h"

namespace autograph {

/// One visit of a node that an op made: the rules are those of graphs, and compute at once.
class TapeRule final : public RuleVisit {
 public:
  TapeRule(TapePass& pass, const std::shared_ptr<TapeNode>& node, const std::vector<Var>& gradients);

  Graph& graph() override;
  const OpDef& op() const override { return *node_->info->op; }
  const Attributes& attributes() const override { return node_->info->attributes; }
  size_t num_inputs() const override { return node_->inputs.size(); }
  size_t num_outputs() const override { return outputs_.size(); }
  bool has_input(size_t slot) const override { return slot < node_->inputs.size() && node_->inputs[slot].is_valid(); }
  bool wants(size_t slot) const override;
  Var in(size_t slot) override { return has_input(slot) ? node_->inputs[slot] : Var(); }
  Var out(size_t slot) override;
  bool has_gy(size_t slot) const override { return slot < gradients_.size() && gradients_[slot].is_valid(); }
  Var gy(size_t slot) override;
  std::optional<std::vector<int64_t>> known_integers(size_t slot) const override;
  std::vector<int64_t> integers(size_t slot) const override;
  void set(size_t slot, const Var& gradient) override;
  std::vector<Var> with_outputs(int count) override;
  [[noreturn]] void unsupported(std::string_view detail) const override;
  Var so_far(size_t slot) override;
  void set_total(size_t slot, const Var& gradient) override;

  /// Computes the op again by its body, and differentiates that: for calls that the rule leaves to it.
  void differentiate_body();

 private:
  void note_set(size_t slot, const Var& gradient);

  TapePass& pass_;
  std::shared_ptr<TapeNode> node_;
  std::vector<Var> outputs_;    // made when asked for
  std::vector<Var> gradients_;  // of the outputs
};

}  // namespace autograph
