// RuleMatch: answers about what was found.
#include <algorithm>

#include "base/check.h"
#include "optimize/rules/pattern/match_attempt.h"

namespace autograph {

const Rule& RuleMatch::rule() const { return *rule_->rule; }

ValueId RuleMatch::value(std::string_view variable) const {
  const int index = rule_->before.find_value(variable);
  AG_CHECK(index >= 0 && !rule_->before.values[static_cast<size_t>(index)].is_list, "[rule] {}: no value '{}'",
           rule().name, variable);
  return values_[static_cast<size_t>(index)];
}

std::vector<ValueId> RuleMatch::list(std::string_view variable) const {
  const int index = rule_->before.find_value(variable);
  AG_CHECK(index >= 0 && rule_->before.values[static_cast<size_t>(index)].is_list, "[rule] {}: no list '{}'",
           rule().name, variable);
  const int maker = rule_->before.values[static_cast<size_t>(index)].statement;
  if (maker >= 0) return node(static_cast<size_t>(maker)).outputs();
  for (size_t s = 0; s < nodes_.size(); ++s) {
    const auto& operands = rule_->before.statements[s].inputs;
    if (operands.empty() || operands.back().kind != PatternOperand::Kind::value) continue;
    if (operands.back().value != index) continue;
    const std::vector<ValueId>& inputs = node(s).inputs();
    return {inputs.begin() + static_cast<std::ptrdiff_t>(operands.size()) - 1, inputs.end()};
  }
  return {};
}

const AttributeValue& RuleMatch::attribute(std::string_view variable) const {
  const int index = rule_->before.find_attribute(variable);
  AG_CHECK(index >= 0, "[rule] {}: no attribute '{}'", rule().name, variable);
  return attributes_[static_cast<size_t>(index)];
}

double RuleMatch::number(std::string_view parameter) const {
  const int index = rule_->before.find_parameter(parameter);
  AG_CHECK(index >= 0, "[rule] {}: no number '{}'", rule().name, parameter);
  return numbers_[static_cast<size_t>(index)];
}

const Node& RuleMatch::op_node(std::string_view op_variable) const {
  const int index = rule_->before.find_op_variable(op_variable);
  AG_CHECK(index >= 0, "[rule] {}: no op '{}'", rule().name, op_variable);
  size_t statement = 0;
  while (rule_->before.statements[statement].op_variable != index) ++statement;
  return node(statement);
}

Dims RuleMatch::dims(std::string_view variable) const { return graph_->type(value(variable)).shape().static_dims(); }

RuleMatch RuleMatch::in(const Graph& graph) const {
  RuleMatch copy = *this;
  copy.graph_ = &graph;
  return copy;
}

bool RuleMatch::still_holds() const { return MatchAttempt::holds(*graph_, *this); }

}  // namespace autograph
