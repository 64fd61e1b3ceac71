#include "optimize/rules/pattern/match_attempt.h"

#include <algorithm>

#include "base/check.h"
#include "optimize/match.h"
#include "optimize/rules/siblings.h"

namespace autograph {
namespace {

using Kind = PatternOperand::Kind;

bool is_list(const Pattern& pattern, const PatternOperand& operand) {
  return operand.kind == Kind::value && pattern.values[static_cast<size_t>(operand.value)].is_list;
}

// Static, without extents of 0: nothing is to be gained there, and rules need not think of it.
bool is_plain(const Type& type) {
  if (!type.is_static()) return false;
  const auto& dims = type.shape().dims();
  return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.value_or(0) > 0; });
}

bool is_output_of_graph(const Graph& graph, ValueId value) { return graph.num_output_uses(value) > 0; }

// What a list operand or a list of outputs stands for.
std::span<const ValueId> listed_inputs(const PatternStatement& statement, const Node& node) {
  return std::span<const ValueId>(node.inputs()).subspan(statement.inputs.size() - 1);
}

std::ptrdiff_t num_ops(const Pattern& pattern) {
  return std::count_if(pattern.statements.begin(), pattern.statements.end(),
                       [](const PatternStatement& statement) { return !statement.is_alias(); });
}

std::vector<uint64_t> hashes_of(const std::vector<ValueId>& values) {
  std::vector<uint64_t> hashes;
  for (const ValueId value : values) hashes.push_back(mixed(value.index, 1));
  return hashes;
}

}  // namespace

MatchAttempt::MatchAttempt(const Graph& graph, std::shared_ptr<const CompiledRule> rule, MatchSink& sink,
                           const std::vector<uint8_t>* left_out, size_t max_tries)
    : graph_(graph), rule_(std::move(rule)), sink_(sink), left_out_(left_out), max_tries_(max_tries) {
  findings_.parameters.resize(rule_->before.parameters.size());
}

void MatchAttempt::run(size_t first, NodeId node) {
  steps_ = &rule_->steps[first];
  if (!steps_->empty()) match_node(first, node, 0);
}

bool MatchAttempt::fits(const Type& type) const {
  return rule_->rule->kind == RuleClass::always_pays ? type.is_tensor() && type.shape().has_rank() : is_plain(type);
}

bool MatchAttempt::all_fit(std::span<const ValueId> values) const {
  return std::all_of(values.begin(), values.end(),
                     [&](ValueId value) { return value.is_valid() && fits(graph_.type(value)); });
}

bool MatchAttempt::is_statement(NodeId node) const {
  const auto end = nodes_.begin() + static_cast<std::ptrdiff_t>(rule_->before.statements.size());
  return std::find(nodes_.begin(), end, node) != end;
}

// A formula may have read on through the value of a variable; then that value's node is inner as well as a statement.
bool MatchAttempt::is_matched(NodeId node) const {
  return is_statement(node) || std::find(findings_.inner.begin(), findings_.inner.end(), node) != findings_.inner.end();
}

// All that can be told without binding anything.
bool MatchAttempt::may_stand_for(size_t index, NodeId id) const {
  const PatternStatement& s = statement(index);
  const Node& node = graph_.node(id);
  if (s.formula) {
    const auto& ops = s.formula->root_ops;
    return std::find(ops.begin(), ops.end(), &node.op()) != ops.end() && !is_statement(id);
  }
  if (s.op ? &node.op() != s.op : !is_in_class(s.op_class, node)) return false;
  const size_t given = num_given_inputs(node);
  const size_t named = s.inputs.size();
  const bool has_list = named > 0 && is_list(rule_->before, s.inputs.back());
  if (has_list ? given + 1 < named : (given < named || (given > named && !leaves_inputs_open(s)))) return false;
  const bool lists_outputs = rule_->before.values[static_cast<size_t>(s.outputs.front())].is_list;
  if (!lists_outputs && node.outputs().size() != s.outputs.size()) return false;
  return !is_statement(id);
}

void MatchAttempt::match_node(size_t index, NodeId id, size_t step) {
  if (!may_stand_for(index, id) || (left_out_ && (*left_out_)[id.index])) return;
  const Node& node = graph_.node(id);
  nodes_[index] = id;
  if (statement(index).formula) {
    match_formula_at(index, node, step);
  } else {
    match_inputs(index, node, step);
  }
  nodes_[index] = NodeId{};
}

void MatchAttempt::match_inputs(size_t index, const Node& node, size_t step) {
  const bool commutes = node.op().traits.commutative && statement(index).inputs.size() >= 2;
  const bool same_inputs = commutes && node.input(0) == node.input(1);
  const size_t mark = num_bound_;
  const std::vector<std::optional<double>> parameters = findings_.parameters;
  for (const bool swapped : {false, true}) {
    if (swapped && (!commutes || same_inputs)) break;
    if (bind_inputs(index, node, swapped) && bind_outputs(index, node)) match_step(step + 1);
    unbind_to(mark);
    findings_.parameters = parameters;
  }
}

void MatchAttempt::match_formula_at(size_t index, const Node& node, size_t step) {
  const size_t mark = num_bound_;
  const auto found = [&] { match_step(step + 1); };
  if (bind_outputs(index, node)) {
    match_formula(graph_, *statement(index).formula, node.output(0), *this, findings_, found);
  }
  unbind_to(mark);
}

bool MatchAttempt::is_bound(ValueId value) const {
  return std::find(values_.begin(), values_.end(), value) != values_.end();
}

void MatchAttempt::unbind_to(size_t mark) {
  while (num_bound_ > mark) values_[static_cast<size_t>(trail_[--num_bound_])] = ValueId{};
}

void MatchAttempt::match_step(size_t step) {
  if (step == steps_->size()) return finish();
  const MatchStep& next = (*steps_)[step];
  const ValueId value = values_[static_cast<size_t>(next.value)];
  const auto index = static_cast<size_t>(next.statement);
  if (!value.is_valid()) return;  // an empty list leads nowhere
  if (next.is_producer) {
    const NodeId producer = graph_.value(value).producer();
    if (producer.is_valid()) match_node(index, producer, step);
    return;
  }
  NodeId previous;
  for (const Use& use : graph_.value(value).uses()) {
    if (num_tries_ >= max_tries_) return;
    if (use.node != previous) match_node(index, use.node, step);
    previous = use.node;
  }
}

bool MatchAttempt::bind(int variable, ValueId value) {
  ValueId& bound = values_[static_cast<size_t>(variable)];
  if (bound.is_valid()) return bound == value;
  if (!fits(graph_.type(value))) return false;
  bound = value;
  trail_[num_bound_++] = variable;
  return true;
}

bool MatchAttempt::bind_operand(const PatternOperand& operand, ValueId input) {
  switch (operand.kind) {
    case Kind::absent: return !input.is_valid();
    case Kind::number: return scalar_constant(graph_, input) == operand.number;
    case Kind::parameter: {
      std::optional<double>& parameter = findings_.parameters[static_cast<size_t>(operand.value)];
      const auto number = scalar_constant(graph_, input);
      if (!parameter) parameter = number;
      return number && parameter == number;
    }
    case Kind::value: return input.is_valid() && bind(operand.value, input);
  }
  return false;
}

bool MatchAttempt::bind_inputs(size_t index, const Node& node, bool swapped) {
  const PatternStatement& s = statement(index);
  for (size_t slot = 0; slot < s.inputs.size(); ++slot) {
    // A list is reached through its first value; that all agree is looked at in the end.
    if (is_list(rule_->before, s.inputs[slot])) {
      const auto list = listed_inputs(s, node);
      return all_fit(list) && (list.empty() || bind(s.inputs[slot].value, list.front()));
    }
    const size_t from = swapped && slot < 2 ? 1 - slot : slot;
    if (!bind_operand(s.inputs[slot], node.input(from))) return false;
  }
  return true;
}

bool MatchAttempt::bind_outputs(size_t index, const Node& node) {
  const PatternStatement& s = statement(index);
  if (rule_->before.values[static_cast<size_t>(s.outputs.front())].is_list) {
    return all_fit(node.outputs()) && bind(s.outputs.front(), node.output(0));
  }
  for (size_t slot = 0; slot < s.outputs.size(); ++slot) {
    if (!bind(s.outputs[slot], node.output(slot))) return false;
  }
  return true;
}

// Are values that will be gone read by the match alone?
bool MatchAttempt::inner_values_die() const {
  const auto dies = [&](ValueId value) {
    const auto& uses = graph_.value(value).uses();
    return std::all_of(uses.begin(), uses.end(), [&](const Use& use) { return is_matched(use.node); }) &&
           !is_output_of_graph(graph_, value);
  };
  for (size_t s = 0; s < rule_->before.statements.size(); ++s) {
    for (const int variable : statement(s).outputs) {
      if (rule_->is_output[static_cast<size_t>(variable)]) continue;
      const bool is_listed = rule_->before.values[static_cast<size_t>(variable)].is_list;
      const auto& outputs = graph_.node(nodes_[s]).outputs();
      if (is_listed ? !std::all_of(outputs.begin(), outputs.end(), dies)
                    : !dies(values_[static_cast<size_t>(variable)])) {
        return false;
      }
    }
  }
  return true;
}

// A list variable that stands in two places stands for the same values.
bool MatchAttempt::lists_agree() const {
  const Pattern& pattern = rule_->before;
  for (size_t v = 0; v < pattern.values.size(); ++v) {
    if (!pattern.values[v].is_list) continue;
    std::optional<std::span<const ValueId>> first;
    const int maker = pattern.values[v].statement;
    if (maker >= 0) first = graph_.node(nodes_[static_cast<size_t>(maker)]).outputs();
    for (size_t s = 0; s < pattern.statements.size(); ++s) {
      const auto& inputs = pattern.statements[s].inputs;
      if (inputs.empty() || inputs.back().kind != Kind::value || inputs.back().value != static_cast<int>(v)) continue;
      const auto list = listed_inputs(pattern.statements[s], graph_.node(nodes_[s]));
      if (!first) first = list;
      if (!std::equal(list.begin(), list.end(), first->begin(), first->end())) return false;
    }
  }
  return true;
}

bool MatchAttempt::ops_agree() const {
  const Pattern& pattern = rule_->before;
  std::array<NodeId, kMaxStatements> first;
  for (size_t s = 0; s < pattern.statements.size(); ++s) {
    if (pattern.statements[s].op_variable < 0) continue;
    NodeId& known = first[static_cast<size_t>(pattern.statements[s].op_variable)];
    if (!known.is_valid()) known = nodes_[s];
    if (!same_op(graph_.node(known), graph_.node(nodes_[s]))) return false;
  }
  return true;
}

bool MatchAttempt::weights_are_weights() const {
  const Pattern& pattern = rule_->before;
  // What depends on constants alone is computed ahead of a search; passes may meet it.
  bool all_weights = rule_->rule->kind != RuleClass::always_pays;
  for (size_t v = 0; v < pattern.values.size(); ++v) {
    const PatternValue& value = pattern.values[v];
    if (value.is_list || value.statement >= 0) continue;
    if (value.is_weight) {
      if (!is_weight(graph_, values_[v])) return false;
    } else if (all_weights) {
      all_weights = is_weight(graph_, values_[v]);
    }
  }
  // Lists are told by the node that reads them.
  return !all_weights || !is_weight(graph_, graph_.node(nodes_[pattern.statements.size() - 1]).output(0));
}

bool MatchAttempt::read_attributes(std::vector<AttributeValue>& values) const {
  std::array<const PatternStatement*, kMaxValues> bound_by{};
  values.resize(rule_->before.attributes.size());
  for (size_t s = 0; s < rule_->before.statements.size(); ++s) {
    const Node& node = graph_.node(nodes_[s]);
    for (const CompiledAttribute& attribute : rule_->attributes[s]) {
      if (attribute.literal) {
        if (!acts_as(graph_, node, *attribute.spec, attribute.role, *attribute.literal)) return false;
      } else if (attribute.variable < 0) {
        if (!acts_as_default(graph_, node, *attribute.spec, attribute.role)) return false;
      } else {
        auto value = acting_attribute(graph_, node, *attribute.spec, attribute.role);
        if (!value) return false;
        const auto variable = static_cast<size_t>(attribute.variable);
        if (!bound_by[variable]) {
          bound_by[variable] = &statement(s);
          values[variable] = std::move(*value);
        } else if (!equal(values[variable], *value)) {
          return false;
        }
      }
    }
  }
  return true;
}

bool MatchAttempt::is_legal() const {
  for (size_t s = 0; s < rule_->before.statements.size(); ++s) {
    for (const ValueId output : graph_.node(nodes_[s]).outputs()) {
      const Type& type = graph_.type(output);
      if (!type.is_tensor() || !rule_->rule->dtypes.contains(type.dtype())) return false;
    }
  }
  return inner_values_die() && lists_agree() && ops_agree();
}

void MatchAttempt::finish() {
  ++num_tries_;
  if (!is_legal()) return;
  RuleMatch match;
  if (!read_attributes(match.attributes_) || !weights_are_weights()) return;
  match.graph_ = &graph_;
  match.rule_ = rule_;
  const Pattern& pattern = rule_->before;
  match.nodes_.assign(nodes_.begin(), nodes_.begin() + static_cast<std::ptrdiff_t>(pattern.statements.size()));
  match.values_.assign(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(pattern.values.size()));
  for (const auto& number : findings_.parameters) match.numbers_.push_back(number.value_or(0));
  match.inner_ = findings_.inner;
  const Rule& rule = *rule_->rule;
  if ((rule.guard && !rule.guard(match)) || (rule.may_pay && !rule.may_pay(match))) return;
  // Nothing would change. Fewer nodes for the same are a change.
  const bool same_size = num_ops(pattern) == num_ops(rule_->after);
  if (!rule_->rule->build && same_size &&
      result_hash(match) == hash_result(pattern, hashes_of(match.values_), rule_->outputs))
    return;
  sink_.take(std::move(match));
}

uint64_t MatchAttempt::result_hash(const RuleMatch& match) {
  const CompiledRule& rule = *match.rule_;
  std::vector<ValueId> values;
  for (const int known : rule.after_values) {
    values.push_back(known < 0 ? ValueId{} : match.values_[static_cast<size_t>(known)]);
  }
  return hash_result(rule.after, hashes_of(values), rule.after_outputs);
}

bool MatchAttempt::holds(const Graph& graph, const RuleMatch& match) {
  class Wanted : public MatchSink {
   public:
    explicit Wanted(const RuleMatch& match) : match_(match) {}
    void take(RuleMatch found) override {
      is_found = is_found || (found.nodes_ == match_.nodes_ && found.values_ == match_.values_);
    }
    bool is_found = false;

   private:
    const RuleMatch& match_;
  };
  const auto is_live = [&](auto id) { return !id.is_valid() || graph.is_live(id); };
  if (!std::all_of(match.nodes_.begin(), match.nodes_.end(), is_live)) return false;
  if (!std::all_of(match.values_.begin(), match.values_.end(), is_live)) return false;
  Wanted wanted(match);
  MatchAttempt attempt(graph, match.rule_, wanted);
  // Values that are known leave one way to reach everything.
  for (size_t v = 0; v < match.values_.size(); ++v) {
    if (!match.values_[v].is_valid()) continue;
    if (!attempt.fits(graph.type(match.values_[v]))) return false;
    attempt.values_[v] = match.values_[v];
  }
  const size_t start = match.rule_->best_start;
  attempt.run(start, match.nodes_[start]);
  return wanted.is_found;
}

}  // namespace autograph
