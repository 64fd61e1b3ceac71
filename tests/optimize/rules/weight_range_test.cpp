// Rules leave constants alone that could overflow, or vanish, by meeting others.
#include "optimize/rules/weight_range.h"

#include <gtest/gtest.h>

#include "autograph/ops/elementwise.h"
#include "optimize/pass_testing.h"
#include "optimize/rules/rule.h"

namespace autograph {
namespace {

// How many of the matches of `rule` can be applied.
size_t applied(const std::string& rule, const Graph& graph) {
  const std::vector<const Rule*> rules{&get_rule(rule)};
  size_t count = 0;
  for (const RuleMatch& match : RuleMatcher(rules).find_all(graph)) {
    Graph copy = graph;
    const size_t nodes = copy.num_nodes(), values = copy.constants().size();
    if (apply_rule(copy, match)) {
      ++count;
    } else {
      EXPECT_EQ(copy.num_nodes(), nodes);
      EXPECT_EQ(copy.constants().size(), values);
    }
  }
  return count;
}

Graph with_factors(DType dtype, double first, double second) {
  Graph graph;
  const Var x = input(graph, dtype, {4}, "x");
  const Var once = mul(x, scalar_like(x, first));
  graph.add_output(mul(once, scalar_like(x, second)).id());
  return graph;
}

Graph with_divisor(double divisor) {
  Graph graph;
  const Var x = input(graph, DType::f32, {4}, "x");
  graph.add_output(div(x, scalar_like(x, divisor)).id());
  return graph;
}

TEST(WeightRange, KeepsFactorsApartThatWouldOverflow) {
  EXPECT_GT(applied("arithmetic.join_factors", with_factors(DType::f32, 1e3, 1e-3)), 0u);
  EXPECT_EQ(applied("arithmetic.join_factors", with_factors(DType::f32, 1e20, 1e20)), 0u);
  EXPECT_EQ(applied("arithmetic.join_factors", with_factors(DType::f32, 1e-20, 1e-20)), 0u);
  EXPECT_GT(applied("arithmetic.join_factors", with_factors(DType::f64, 1e20, 1e20)), 0u);
  EXPECT_EQ(applied("arithmetic.join_factors", with_factors(DType::f16, 300, 300)), 0u);
}

TEST(WeightRange, KeepsDivisorsWhoseReciprocalsOverflow) {
  EXPECT_GT(applied("arithmetic.multiply_by_reciprocal", with_divisor(3)), 0u);
  EXPECT_EQ(applied("arithmetic.multiply_by_reciprocal", with_divisor(1e-39)), 0u);
}

TEST(WeightRange, LooksThroughWhatIsNotComputedYet) {
  Graph graph;
  const Var x = input(graph, DType::f32, {4}, "x");
  const Var c = mul(constant(graph, Tensor::of<float>({4}, {1e10F, 1, 1, 1})), scalar(graph, 1e10F));
  const Var y = mul(x, c);
  const std::vector<NodeId> nodes{graph.value(y.id()).producer()};
  EXPECT_FALSE(have_moderate_factors(graph, nodes));
  const Var small = mul(x, mul(constant(graph, Tensor::of<float>({4}, {1e3F, 0, 1, 1})), scalar(graph, 2)));
  const std::vector<NodeId> others{graph.value(small.id()).producer()};
  EXPECT_TRUE(have_moderate_factors(graph, others));
}

}  // namespace
}  // namespace autograph
