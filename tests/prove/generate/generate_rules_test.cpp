// Finding rules: what comes out is verified, is no consequence of itself, and contains what is known by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "autograph/error.h"
#include "autograph/prove.h"
#include "prove/generate/enumerate.h"
#include "prove/generate/rewrite_search.h"

namespace autograph {
namespace {

GenerateRulesOptions options_for(std::vector<std::string> ops, int max_ops) {
  GenerateRulesOptions options;
  options.max_ops = max_ops;
  options.ops = std::move(ops);
  options.cases = 15;
  return options;
}

// As `before => after`, either way round.
bool has_rule(const GeneratedRules& found, const std::string& a, const std::string& b) {
  return std::any_of(found.rules.begin(), found.rules.end(), [&](const GeneratedRule& rule) {
    const std::string& before = rule.report.rule.pattern;
    const std::string& after = rule.report.rule.replacement;
    return (before == a && after == b) || (before == b && after == a);
  });
}

std::string all_of(const GeneratedRules& found) { return print_rules(found); }

TEST(GenerateRules, FindsThatSumsAndProductsDistribute) {
  const GeneratedRules found = generate_rules(options_for({"add", "mul"}, 3));
  EXPECT_TRUE(has_rule(found, "t0 = mul(a, b); t1 = mul(a, c); y = add(t0, t1)", "t0 = add(b, c); y = mul(a, t0)"))
      << all_of(found);
  for (const GeneratedRule& rule : found.rules) {
    EXPECT_TRUE(rule.report.is_verified()) << rule.report.rule.pattern;
    EXPECT_GE(rule.report.exact_cases, 10u);
  }
  EXPECT_TRUE(found.complete);
  EXPECT_GT(found.consequences, 0u);
}

TEST(GenerateRules, FindsAndRecognizesTheLawsOfMatrices) {
  const GeneratedRules found = generate_rules(options_for({"add", "matmul"}, 3));
  EXPECT_TRUE(has_rule(found, "t0 = matmul(a, b); y = matmul(t0, c)", "t0 = matmul(b, c); y = matmul(a, t0)") ||
              has_rule(found, "t0 = matmul(a, b); y = matmul(c, t0)", "t0 = matmul(c, a); y = matmul(t0, b)"))
      << all_of(found);
  // Hand-written rules know the laws; only some of what needs several of them at once is too far for the search.
  size_t covered = 0;
  for (const GeneratedRule& rule : found.rules) {
    EXPECT_EQ(rule.is_covered, !rule.covered_by.empty());
    covered += rule.is_covered;
    if (rule.ops_before == 2 && rule.ops_after == 2) {
      EXPECT_TRUE(rule.is_covered) << rule.report.rule.pattern << " => " << rule.report.rule.replacement;
    }
  }
  EXPECT_GT(covered, 5u);
}

TEST(GenerateRules, FunctionsWithoutPropertiesHaveNoLawsOfTheirOwn) {
  const GeneratedRules found = generate_rules(options_for({"sigmoid", "add"}, 2));
  for (const GeneratedRule& rule : found.rules) {
    EXPECT_EQ(rule.report.rule.pattern.find("sigmoid"), std::string::npos) << rule.report.rule.pattern;
  }
}

TEST(GenerateRules, MovesFunctionsPastConcats) {
  const GeneratedRules found = generate_rules(options_for({"sigmoid", "concat"}, 3));
  EXPECT_TRUE(has_rule(found, "t0 = sigmoid(a); t1 = sigmoid(b); y = concat[axis=0](t0, t1)",
                       "t0 = concat[axis=0](a, b); y = sigmoid(t0)") ||
              has_rule(found, "t0 = sigmoid(a); t1 = sigmoid(b); y = concat[axis=0](t1, t0)",
                       "t0 = concat[axis=0](b, a); y = sigmoid(t0)"))
      << all_of(found);
}

TEST(GenerateRules, IsTheSameForASeedAndStopsAtItsLimits) {
  const GeneratedRules first = generate_rules(options_for({"add", "neg"}, 2));
  const GeneratedRules second = generate_rules(options_for({"add", "neg"}, 2));
  EXPECT_EQ(print_rules(first), print_rules(second));
  GenerateRulesOptions small = options_for({"add", "mul"}, 3);
  small.max_graphs = 100;
  const GeneratedRules stopped = generate_rules(small);
  EXPECT_FALSE(stopped.complete);
  EXPECT_LE(stopped.graphs, 100u);
}

TEST(GenerateRules, SuggestsTheNearestFamily) {
  try {
    generate_rules(options_for({"matmull"}, 1));
    FAIL() << "expected an error";
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'matmul'?"), std::string::npos) << error.what();
  }
}

TEST(TermHash, LooksThroughTheOrderOfOperands) {
  const auto sum = [](bool swapped, std::string_view op) {
    Graph graph;
    const ValueId a = graph.add_input(Type(DType::f32, Shape{2}));
    const ValueId b = graph.add_input(Type(DType::f32, Shape{2}));
    const auto inputs = swapped ? std::vector{b, a} : std::vector{a, b};
    graph.add_output(graph.node(graph.add_node(get_op(op), inputs)).output(0));
    return term_hash(graph);
  };
  EXPECT_EQ(sum(false, "add"), sum(true, "add"));
  EXPECT_NE(sum(false, "sub"), sum(true, "sub"));
  EXPECT_NE(sum(false, "add"), sum(false, "mul"));
}

}  // namespace
}  // namespace autograph
