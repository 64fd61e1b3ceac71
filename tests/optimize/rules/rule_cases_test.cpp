#include "optimize/rules/rule_cases.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <unordered_set>

#include "autograph/random.h"
#include "autograph/text.h"
#include "optimize/pass_testing.h"
#include "optimize/rules/pattern/pattern.h"
#include "optimize/rules/rule.h"

namespace autograph {
namespace {

std::vector<RuleCase>& table() {
  static std::vector<RuleCase> cases;
  return cases;
}

std::vector<int64_t> read_integers(std::string text) {
  std::vector<int64_t> list;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) list.push_back(std::stoll(part));
  return list;
}

// "x:2,3" or "$c:3" or "$s:={1,2}": adds the value and returns its name.
std::pair<std::string, ValueId> add_value(Graph& graph, std::string text, Random& random) {
  text.erase(0, text.find_first_not_of(' '));
  const bool is_constant = text[0] == '$';
  if (is_constant) text.erase(0, 1);
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  std::string rest = text.substr(colon + 1);
  if (rest == "=quarter") {
    return {name, graph.add_constant(Tensor::of<float>({2, 1, 4}, std::vector<float>(8, 0.25F)), name)};
  }
  if (rest == "=ones") return {name, graph.add_constant(Tensor::of<float>({3}, {1, 1, 1}), name)};
  if (rest[0] == '=') {
    rest = rest.substr(2, rest.size() - 3);
    return {name, graph.add_constant(Tensor::vector(read_integers(rest)), name)};
  }
  if (rest[0] == '#') {
    return {name, graph.add_input(Type(DType::i64, Shape::of(read_integers(rest.substr(1)))), name)};
  }
  const Dims dims = read_integers(rest);
  if (is_constant) return {name, graph.add_constant(draw_tensor(random, DType::f32, dims, 0.5, 1.5), name)};
  return {name, graph.add_input(Type(DType::f32, Shape::of(dims)), name)};
}

Attributes attributes_of(const PatternStatement& statement) {
  Attributes attributes;
  for (const PatternAttribute& attribute : statement.attributes) {
    EXPECT_LT(attribute.variable, 0) << "attributes of cases are literals";
    attributes.set(attribute.spec->name, attribute.literal);
  }
  return attributes;
}

std::vector<RuleMatch> matches_of(const Rule& rule, const Graph& graph) {
  const Rule* const rules[] = {&rule};
  return RuleMatcher(rules).find_all(graph);
}

// Every match, applied alone, keeps the numbers. Returns how many there were.
size_t check_all_matches(const Rule& rule, const Graph& before) {
  const std::vector<RuleMatch> matches = matches_of(rule, before);
  Random random(5);
  for (const RuleMatch& match : matches) {
    Graph after = before;
    const auto effect = apply_rule(after, match);
    EXPECT_TRUE(effect.has_value());
    if (!effect) continue;
    verify(after);
    EXPECT_EQ(numeric_difference(before, after, random, {1e-3, 1e-4}), "") << print_text(after);
    EXPECT_FALSE(effect->added.empty() && effect->removed.empty());
  }
  return matches.size();
}

}  // namespace

Graph make_case_graph(const RuleCase& rule_case) {
  Random random(3);
  Graph graph(std::string(rule_case.rule));
  std::map<std::string, ValueId> values;
  std::stringstream list{std::string(rule_case.values)};
  for (std::string part; std::getline(list, part, ';');) values.insert(add_value(graph, part, random));
  const Pattern pattern = parse_pattern(rule_case.text);
  for (const PatternStatement& statement : pattern.statements) {
    std::vector<ValueId> inputs;
    for (const PatternOperand& operand : statement.inputs) {
      if (operand.kind == PatternOperand::Kind::number) {
        inputs.push_back(graph.add_constant(Tensor::scalar(static_cast<float>(operand.number))));
      } else if (operand.kind == PatternOperand::Kind::absent) {
        inputs.emplace_back();
      } else {
        inputs.push_back(values.at(pattern.values[static_cast<size_t>(operand.value)].name));
      }
    }
    const int count = static_cast<int>(statement.outputs.size());
    const NodeId node = graph.add_node(*statement.op, inputs, attributes_of(statement), {{}, count});
    for (size_t slot = 0; slot < statement.outputs.size(); ++slot) {
      values[pattern.values[static_cast<size_t>(statement.outputs[slot])].name] = graph.node(node).output(slot);
    }
  }
  std::stringstream kept{std::string(rule_case.kept)};
  for (std::string name; kept >> name;) graph.add_output(values.at(name), name);
  for (const PatternValue& value : pattern.values) {
    const ValueId id = values.at(value.name);
    if (value.statement >= 0 && graph.value(id).uses().empty() && graph.num_output_uses(id) == 0) {
      graph.add_output(id, value.name);
    }
  }
  return graph;
}

bool add_rule_cases(const std::vector<RuleCase>& cases) {
  table().insert(table().end(), cases.begin(), cases.end());
  return true;
}

const std::vector<RuleCase>& all_rule_cases() { return table(); }

TEST(RuleCases, FireAndKeepTheNumbersOrAreRefused) {
  for (const RuleCase& rule_case : all_rule_cases()) {
    SCOPED_TRACE(fmt::format("{} on {}", rule_case.rule, rule_case.text));
    const Graph graph = make_case_graph(rule_case);
    verify(graph);
    const size_t count = check_all_matches(wherever_true(get_rule(rule_case.rule)), graph);
    EXPECT_EQ(count > 0, rule_case.fires);
  }
}

TEST(RuleCases, CoverEveryRuleAndEveryGuard) {
  std::set<std::string_view> fired;
  std::set<std::string_view> refused;
  for (const RuleCase& rule_case : all_rule_cases()) (rule_case.fires ? fired : refused).insert(rule_case.rule);
  for (const Rule& rule : all_rules()) {
    EXPECT_TRUE(fired.count(rule.name)) << rule.name << " has no case";
    EXPECT_TRUE(!rule.guard || refused.count(rule.name)) << "the guard of " << rule.name << " has no case";
  }
}

TEST(RuleCases, EveryCaseRollsBackExactly) {
  for (const RuleCase& rule_case : all_rule_cases()) {
    const Graph before = make_case_graph(rule_case);
    const std::string text = print_text(before);
    const Rule rule = wherever_true(get_rule(rule_case.rule));
    for (const RuleMatch& match : matches_of(rule, before)) {
      Graph graph = before;
      GraphTransaction transaction(graph);
      EXPECT_TRUE(apply_rule(graph, match));
      transaction.rollback();
      EXPECT_EQ(print_text(graph), text) << rule_case.rule;
      EXPECT_EQ(graph.value_capacity(), before.value_capacity());
    }
  }
}

// Passes ask only for rules whose ops a graph has: where a rule matches it is among them.
TEST(RuleCases, AreCandidatesByTheirOps) {
  std::vector<const Rule*> rules;
  for (const Rule& rule : all_rules()) rules.push_back(&rule);
  const RuleMatcher matcher(rules);
  size_t num_matches = 0;
  for (const RuleCase& rule_case : all_rule_cases()) {
    const Graph graph = make_case_graph(rule_case);
    std::unordered_set<const OpDef*> ops;
    for (const NodeId id : graph.nodes()) ops.insert(&graph.node(id).op());
    const std::vector<uint8_t> candidates = matcher.find_candidates(ops);
    for (const NodeId id : graph.nodes()) {
      for (const RuleMatch& match : matcher.find_at(graph, id)) {
        const auto at = std::find(rules.begin(), rules.end(), &match.rule()) - rules.begin();
        EXPECT_TRUE(candidates[static_cast<size_t>(at)]) << match.rule().name << " on " << rule_case.text;
        ++num_matches;
      }
    }
  }
  EXPECT_GT(num_matches, 0U);
}

}  // namespace autograph
