#include "optimize/rules/pattern/compiled_rule.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"
#include "graph/attribute_hash.h"
#include "ops/defs.h"

namespace autograph {
namespace {

uint64_t hash_literal(const AttributeValue& value) {
  Hasher hasher;
  add_attribute(hasher, value);
  return hasher.finish().low;
}

void add_needs(const Sum& sum, std::vector<const OpDef*>& needs) {
  for (const Term& term : sum.terms) {
    for (const Factor& factor : term.factors) {
      if (factor.group) add_needs(*factor.group, needs);
      if (!factor.call) continue;
      needs.push_back(factor.call->op);
      for (const Sum& argument : factor.call->arguments) add_needs(argument, needs);
    }
  }
}

}  // namespace

std::vector<std::string_view> outputs_of(const Rule& rule, const Pattern& pattern) {
  if (!rule.outputs.empty()) return rule.outputs;
  std::vector<std::string_view> names;
  for (const int output : pattern.statements.back().outputs) {
    names.push_back(pattern.values[static_cast<size_t>(output)].name);
  }
  return names;
}

CompiledRule::CompiledRule(const Rule& source) : rule(&source), before(parse_pattern(source.before)) {
  const std::string where = fmt::format("[rule] {}:", source.name);
  AG_CHECK(!before.statements.empty(), "{} no pattern", where);
  AG_CHECK(before.statements.size() <= kMaxStatements && before.values.size() <= kMaxValues, "{} is too large", where);
  for (const PatternStatement& statement : before.statements) {
    AG_CHECK(!statement.is_alias(), "{} a pattern consists of ops", where);
  }
  is_output.assign(before.values.size(), 0);
  for (const std::string_view name : outputs_of(source, before)) {
    const int value = before.find_value(name);
    AG_CHECK(value >= 0 && before.values[static_cast<size_t>(value)].statement >= 0,
             "{} output '{}' is not made in the pattern", where, name);
    outputs.push_back(value);
    is_output[static_cast<size_t>(value)] = 1;
  }
  AG_CHECK((source.guard == nullptr) == source.guard_doc.empty(), "{} a guard and its words go together", where);
  compile_attributes();
  compile_needs();
  compile_steps();
  if (!source.build) compile_after();
}

void CompiledRule::compile_attributes() {
  for (const PatternStatement& statement : before.statements) {
    auto& list = attributes.emplace_back();
    if (!statement.op) continue;
    for (const AttributeSpec& spec : statement.op->attributes) {
      CompiledAttribute compiled{&spec, attribute_role(*statement.op, spec), -1, nullptr};
      for (const PatternAttribute& named : statement.attributes) {
        if (named.spec != &spec) continue;
        compiled.variable = named.variable;
        if (named.variable < 0) compiled.literal = &named.literal;
      }
      if (compiled.role != AttributeRole::ignored) list.push_back(compiled);
    }
  }
}

// Arithmetic in formulas is spelled in many ways; functions in formulas, and statements, are ops of one name.
void CompiledRule::compile_needs() {
  for (const PatternStatement& statement : before.statements) {
    if (statement.op) needs.push_back(statement.op);
    if (statement.formula) add_needs(statement.formula->sum, needs);
  }
}

void CompiledRule::compile_steps() {
  size_t fewest = kMaxStatements;
  for (int first = 0; first < static_cast<int>(before.statements.size()); ++first) {
    steps.push_back(steps_from(first));
    if (steps.back().empty()) continue;
    const auto readers = static_cast<size_t>(std::count_if(steps.back().begin() + 1, steps.back().end(),
                                                           [](const MatchStep& step) { return !step.is_producer; }));
    if (readers > fewest) continue;
    fewest = readers;
    best_start = static_cast<size_t>(first);
  }
  AG_CHECK(fewest < kMaxStatements, "[rule] {}: the statements of the pattern share no values", rule->name);
}

// Reaches producers before readers: a value has one producer and may have many readers. Formulas are reached through
// what they give alone: whatever reads a variable may be far inside of them.
std::vector<MatchStep> CompiledRule::steps_from(int first) const {
  std::vector<MatchStep> order{{first, -1, false}};
  std::vector<uint8_t> is_reached(before.statements.size(), 0);
  std::vector<uint8_t> is_known(before.values.size(), 0);
  const auto reach = [&](int statement) {
    is_reached[static_cast<size_t>(statement)] = 1;
    const PatternStatement& s = before.statements[static_cast<size_t>(statement)];
    for (const PatternOperand& operand : s.inputs) {
      if (operand.kind == PatternOperand::Kind::value) is_known[static_cast<size_t>(operand.value)] = 1;
    }
    for (const int output : s.outputs) is_known[static_cast<size_t>(output)] = 1;
  };
  const auto reads = [&](const PatternStatement& s, int value) {
    return std::any_of(s.inputs.begin(), s.inputs.end(), [&](const PatternOperand& operand) {
      return operand.kind == PatternOperand::Kind::value && operand.value == value;
    });
  };
  // Values made in the pattern have few readers, weights may have many, lists may be empty.
  const auto preference = [](const PatternValue& value) {
    if (value.is_list) return 0;
    return value.statement >= 0 ? 3 : (value.is_weight ? 1 : 2);
  };
  const auto find_next = [&]() -> MatchStep {
    MatchStep next{-1, -1, false};
    int best = -1;
    for (int v = 0; v < static_cast<int>(before.values.size()); ++v) {
      const PatternValue& value = before.values[static_cast<size_t>(v)];
      if (!is_known[static_cast<size_t>(v)]) continue;
      if (value.statement >= 0 && !is_reached[static_cast<size_t>(value.statement)]) return {value.statement, v, true};
      if (preference(value) <= best) continue;
      for (int s = 0; s < static_cast<int>(before.statements.size()); ++s) {
        const PatternStatement& reader = before.statements[static_cast<size_t>(s)];
        if (is_reached[static_cast<size_t>(s)] || reader.formula || !reads(reader, v)) continue;
        next = {s, v, false};
        best = preference(value);
        break;
      }
    }
    return next;
  };
  reach(first);
  while (order.size() < before.statements.size()) {
    const MatchStep next = find_next();
    if (next.statement < 0) return {};
    order.push_back(next);
    reach(next.statement);
  }
  return order;
}

void CompiledRule::compile_after() {
  after = parse_pattern(rule->after);
  for (const PatternValue& value : after.values) {
    const int known = value.statement >= 0 ? -1 : before.find_value(value.name);
    AG_CHECK(value.statement >= 0 || known >= 0, "[rule] {}: '{}' is not in the pattern", rule->name, value.name);
    AG_CHECK(known < 0 || before.values[static_cast<size_t>(known)].statement < 0, "[rule] {}: '{}' will be gone",
             rule->name, value.name);
    after_values.push_back(known);
  }
  for (const std::string& name : after.attributes) {
    after_attributes.push_back(before.find_attribute(name));
    AG_CHECK(after_attributes.back() >= 0, "[rule] {}: attribute '{}' is not in the pattern", rule->name, name);
  }
  for (const std::string& name : after.parameters) {
    after_parameters.push_back(before.find_parameter(name));
    AG_CHECK(after_parameters.back() >= 0, "[rule] {}: number '{}' is not in the pattern", rule->name, name);
  }
  for (const PatternStatement& statement : after.statements) {
    AG_CHECK(!statement.formula, "[rule] {}: a replacement consists of ops", rule->name);
  }
  for (const std::string& name : after.op_variables) {
    const int variable = before.find_op_variable(name);
    AG_CHECK(variable >= 0, "[rule] {}: op '{}' is not in the pattern", rule->name, name);
    int statement = 0;
    while (before.statements[static_cast<size_t>(statement)].op_variable != variable) ++statement;
    after_ops.push_back(statement);
  }
  for (const std::string_view name : outputs_of(*rule, before)) {
    after_outputs.push_back(after.find_value(name));
    AG_CHECK(after_outputs.back() >= 0, "[rule] {}: the replacement does not make '{}'", rule->name, name);
    AG_CHECK(!after.values[static_cast<size_t>(after_outputs.back())].is_list,
             "[rule] {}: a list of outputs needs a build function", rule->name);
  }
}

uint64_t mixed(uint64_t a, uint64_t b) {
  a ^= b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2);
  a *= 0xff51afd7ed558ccdULL;
  return a ^ (a >> 33);
}

uint64_t hash_result(const Pattern& pattern, std::vector<uint64_t> values, std::span<const int> outputs) {
  const std::hash<std::string_view> hash_text;
  for (const PatternStatement& statement : pattern.statements) {
    std::vector<uint64_t> inputs;
    for (const PatternOperand& operand : statement.inputs) {
      const bool is_value = operand.kind == PatternOperand::Kind::value;
      inputs.push_back(is_value ? values[static_cast<size_t>(operand.value)] : std::hash<double>()(operand.number));
    }
    if (statement.op && statement.op->traits.commutative && inputs.size() >= 2 && inputs[0] > inputs[1]) {
      std::swap(inputs[0], inputs[1]);
    }
    uint64_t hash = hash_text(statement.op ? statement.op->name : std::string_view("class"));
    if (statement.formula) hash = mixed(hash, reinterpret_cast<uintptr_t>(statement.formula.get()));
    if (statement.op_variable >= 0) {
      hash = mixed(hash, hash_text(pattern.op_variables[static_cast<size_t>(statement.op_variable)]));
    }
    for (const PatternAttribute& attribute : statement.attributes) {
      hash = mixed(hash, hash_text(attribute.spec->name));
      hash =
          mixed(hash, attribute.variable >= 0 ? hash_text(pattern.attributes[static_cast<size_t>(attribute.variable)])
                                              : hash_literal(attribute.literal));
    }
    for (const uint64_t input : inputs) hash = mixed(hash, input);
    if (statement.is_alias()) hash = inputs.front();
    for (size_t slot = 0; slot < statement.outputs.size(); ++slot) {
      values[static_cast<size_t>(statement.outputs[slot])] = slot == 0 ? hash : mixed(hash, slot);
    }
  }
  uint64_t hash = 0;
  for (const int output : outputs) hash = mixed(hash, values[static_cast<size_t>(output)]);
  return hash;
}

bool is_in_class(OpClass op_class, const Node& node) {
  const size_t num_inputs = op_class == OpClass::unary ? 1 : 2;
  const OpDef& op = node.op();
  if (!op.traits.elementwise || !op.traits.pure || node.outputs().size() != 1) return false;
  return node.inputs().size() == num_inputs && node.input(num_inputs - 1).is_valid() && node.input(0).is_valid();
}

size_t num_given_inputs(const Node& node) {
  size_t count = node.inputs().size();
  while (count > 0 && !node.inputs()[count - 1].is_valid()) --count;
  return count;
}

bool leaves_inputs_open(const PatternStatement& statement) {
  return statement.op && statement.op == &split_def() && statement.inputs.size() == 1;
}

}  // namespace autograph
