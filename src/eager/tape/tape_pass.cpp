#include "eager/tape/tape_pass.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "autograph/error.h"
#include "base/check.h"
#include "base/rethrow.h"
#include "eager/modes.h"
#include "eager/tape/tape_rule.h"
#include "ops/sequence/sequence_vjp.h"

namespace autograph {
namespace {

const Eager& eager_in(const Var& value) { return static_cast<const Eager&>(value.eager()); }

// A rule for most calls of an op leaves the others to the body, before it has set anything.
void apply_rule(const OpDef& op, TapeRule& rule) {
  try {
    op.vjp(rule);
  } catch (const UnsupportedError&) {
    if (!op.decompose || rule.has_set_any()) throw;
    rule.differentiate_body();
  }
}

}  // namespace

TapePass::TapePass(const std::vector<Var>& outputs, const std::vector<Var>* wanted, bool differentiable)
    : differentiable_(differentiable) {
  collect(outputs);
  mark(wanted);
}

void TapePass::collect(const std::vector<Var>& outputs) {
  std::vector<TapeNode*> open;
  const auto reach = [&](const Var& value) {
    if (!value.is_valid()) return;
    auto& here = static_cast<Eager&>(value.eager());
    if (Eager* variable = here.leaf()) {
      if (leaves_.try_emplace(variable).second) variables_.emplace_back(variable->shared_from_this());
    } else if (here.producer() && visits_.try_emplace(here.producer().get()).second) {
      nodes_.push_back(here.producer());
      open.push_back(here.producer().get());
    }
  };
  for (const Var& output : outputs) reach(output);
  while (!open.empty()) {
    const TapeNode* node = open.back();
    open.pop_back();
    for (const Var& input : node->inputs) reach(input);
  }
  std::sort(nodes_.begin(), nodes_.end(), [](const auto& a, const auto& b) { return a->number < b->number; });
}

void TapePass::mark(const std::vector<Var>* wanted) {
  if (!wanted) {
    for (auto& [variable, leaf] : leaves_) leaf.is_wanted = true;
  } else {
    for (const Var& value : *wanted) {
      const Eager& here = eager_in(value);
      if (const auto leaf = leaves_.find(here.leaf()); leaf != leaves_.end()) leaf->second.is_wanted = true;
      const auto visit = visits_.find(here.producer().get());
      if (visit == visits_.end()) continue;
      visit->second.is_active = true;
      visit->second.wanted.resize(here.producer()->outputs.size(), 0);
      visit->second.wanted[here.slot()] = 1;
    }
  }
  for (const auto& node : nodes_) {
    Visit& visit = visits_.at(node.get());
    visit.gradients.resize(node->outputs.size());
    visit.is_active = visit.is_active || std::any_of(node->inputs.begin(), node->inputs.end(),
                                                     [this](const Var& input) { return is_active(input); });
  }
}

bool TapePass::is_active(const Var& input) const {
  if (!input.is_valid()) return false;
  const Eager& here = eager_in(input);
  if (here.leaf()) {
    const auto leaf = leaves_.find(here.leaf());
    return leaf != leaves_.end() && leaf->second.is_wanted;
  }
  if (!here.producer()) return false;
  const auto visit = visits_.find(here.producer().get());
  return visit != visits_.end() && visit->second.is_active;
}

Var TapePass::sum(const Var& a, const Var& b) {
  if (!a.is_valid()) return b;
  return sum_of_gradients(a, b);
}

void TapePass::seed(const Var& value, const Var& gradient) {
  if (Var* total = total_of(value)) *total = sum(*total, gradient);
}

Var* TapePass::total_of(const Var& value) {
  const Eager& here = eager_in(value);
  if (here.leaf()) {
    const auto leaf = leaves_.find(here.leaf());
    return leaf != leaves_.end() && leaf->second.is_wanted ? &leaf->second.gradient : nullptr;
  }
  const auto visit = visits_.find(here.producer().get());
  return visit != visits_.end() && visit->second.is_active ? &visit->second.gradients[here.slot()] : nullptr;
}

// A node is let go when it has been visited, so that what only the pass holds on to goes as early as it can.
void TapePass::run() {
  const RecordScope records(differentiable_);
  while (!nodes_.empty()) {
    visit(*nodes_.back());
    nodes_.pop_back();
  }
  for (const Var& variable : variables_) {
    Leaf& leaf = leaves_.at(&eager_in(variable));
    if (leaf.gradient.is_valid()) leaf.gradient = eager_in(variable).hooked(leaf.gradient);
  }
}

void TapePass::visit(TapeNode& node) {
  Visit& visit = visits_.at(&node);
  const auto flows = [](const Var& gradient) { return gradient.is_valid(); };
  if (!visit.is_active || std::none_of(visit.gradients.begin(), visit.gradients.end(), flows)) return;
  try {
    run_hooks(node, visit);
    const bool goes_on =
        std::any_of(node.inputs.begin(), node.inputs.end(), [this](const Var& input) { return is_active(input); });
    if (goes_on && node.info->op) {
      std::optional<ProvenanceScope> scope;
      if (differentiable_) scope.emplace("gradient/" + std::string(node.info->name));
      TapeRule rule(*this, nodes_.back(), visit.gradients);
      if (!node.info->op->vjp) rule.unsupported("it has no gradient rule");
      apply_rule(*node.info->op, rule);
      rule.check_all_set();
    } else if (goes_on) {
      call_function(node, visit);
    }
  } catch (const UnsupportedError&) {
    throw;  // says where by itself
  } catch (...) {
    rethrow_changed(
        [&](const std::string& message) { return message + " (in the gradient of " + node.describe() + ")"; });
  }
  for (size_t slot = 0; slot < visit.gradients.size(); ++slot) {
    if (slot >= visit.wanted.size() || !visit.wanted[slot]) visit.gradients[slot] = Var();
  }
}

void TapePass::run_hooks(const TapeNode& node, Visit& visit) {
  const auto hooks = node.hooks;  // a hook may remove itself
  for (const auto& [slot, hook] : hooks) {
    Var& gradient = visit.gradients[slot];
    if (gradient.is_valid()) gradient = changed_by(*hook, gradient, gradient.type());
  }
}

void TapePass::call_function(TapeNode& node, Visit& visit) {
  const std::vector<Var> gradients = node.function(visit.gradients);
  AG_CHECK_USER(gradients.size() == node.inputs.size(), ValueError,
                "[gradient] function: expected a gradient for each of {} inputs, got {}", node.inputs.size(),
                gradients.size());
  for (size_t slot = 0; slot < gradients.size(); ++slot) {
    if (!is_active(node.inputs[slot]) || !gradients[slot].is_valid()) continue;
    check_gradient(gradients[slot], node.inputs[slot].type(), fmt::format("a function, of input {}", slot));
    seed(node.inputs[slot], gradients[slot]);
  }
}

Var TapePass::gradient(const Var& wanted) const {
  const Eager& here = eager_in(wanted);
  if (const auto leaf = leaves_.find(here.leaf()); leaf != leaves_.end()) return leaf->second.gradient;
  const auto visit = visits_.find(here.producer().get());
  return visit == visits_.end() ? Var() : visit->second.gradients[here.slot()];
}

}  // namespace autograph
