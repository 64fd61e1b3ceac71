// Which nodes depend on which: as walking every path tells, at a cost that graphs of 100,000 nodes can bear.
#include "optimize/rules/pattern/ancestry.h"

#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/random.h"
#include "optimize/rules/siblings.h"
#include "optimize/search/search_testing.h"
#include "support/graphs/random_graph.h"

namespace autograph {
namespace {

// By node: all that depend on it.
std::vector<std::vector<bool>> closure_of(const Graph& graph) {
  std::vector<std::vector<bool>> reached(graph.node_capacity(), std::vector<bool>(graph.node_capacity(), false));
  std::vector<NodeId> order = graph.topological_order();
  std::reverse(order.begin(), order.end());
  for (const NodeId id : order) {
    for (const ValueId value : graph.node(id).outputs()) {
      for (const Use& use : graph.value(value).uses()) {
        reached[id.index][use.node.index] = true;
        for (size_t k = 0; k < reached.size(); ++k) {
          if (reached[use.node.index][k]) reached[id.index][k] = true;
        }
      }
    }
  }
  return reached;
}

// Layers side by side that share what they begin with, and what they end in.
Graph towers(int count, int depth) {
  Graph graph("towers");
  const Var x = input(graph, DType::f32, {4, 4}, "x");
  Var sum = x;
  for (int tower = 0; tower < count; ++tower) {
    Var y = x;
    for (int layer = 0; layer < depth; ++layer) y = relu(y);
    sum = sum + y;
  }
  graph.add_output(sum.id(), "y");
  return graph;
}

// h = tanh(h U + x W), step by step, with the same weights: as many products with each as there are steps.
Graph steps_of_one_cell(int count) {
  Graph graph("steps");
  const auto weight = [&](float element) {
    return constant(graph, Tensor::of<float>({4, 4}, std::vector<float>(16, element)));
  };
  const Var u = weight(0.1F), w = weight(0.2F);
  Var x = input(graph, DType::f32, {1, 4}, "x");
  Var h = input(graph, DType::f32, {1, 4}, "h");
  for (int step = 0; step < count; ++step) h = tanh(matmul(h, u) + matmul(x, w));
  graph.add_output(h.id(), "y");
  return graph;
}

TEST(Ancestry, TellsWhatWalkingEveryPathTells) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    const Graph graph = make_random_graph(random, 30).graph;
    const auto reached = closure_of(graph);
    const Ancestry ancestry(graph);
    for (const NodeId a : graph.nodes()) {
      ASSERT_TRUE(ancestry.knows(a));
      for (const NodeId b : graph.nodes()) {
        if (a == b) continue;
        EXPECT_EQ(ancestry.may_lead(a, b), reached[a.index][b.index]) << seed << ": " << a.index << ", " << b.index;
      }
    }
  }
}

TEST(Ancestry, LooksAtHardlyAnyNodeOfLargeGraphs) {
  for (const int depth : {200, 2000}) {  // 10,000 and 100,000 nodes
    const Graph graph = towers(50, depth);
    const std::vector<NodeId> nodes = graph.nodes();
    const Ancestry ancestry(graph);
    Random random(7);
    constexpr size_t kPairs = 100'000;
    size_t num_apart = 0;
    for (size_t k = 0; k < kPairs; ++k) {
      const NodeId a = nodes[random() % nodes.size()], b = nodes[random() % nodes.size()];
      if (a != b && !ancestry.may_lead(a, b) && !ancestry.may_lead(b, a)) ++num_apart;
    }
    EXPECT_GT(num_apart, kPairs * 9 / 10);
    EXPECT_LT(ancestry.num_walked(), kPairs) << "at " << nodes.size() << " nodes";
  }
}

TEST(Ancestry, ScopesAreAskedByIndependence) {
  const Graph graph = towers(3, 5);
  const std::vector<NodeId> nodes = graph.nodes();
  EXPECT_EQ(ancestry_of(graph), nullptr);
  std::vector<bool> before;
  for (const NodeId a : nodes) {
    for (const NodeId b : nodes) before.push_back(are_independent(graph, a, b));
  }
  const AncestryScope scope(graph);
  const Ancestry* ancestry = ancestry_of(graph);
  ASSERT_NE(ancestry, nullptr);
  {
    const AncestryScope inner(graph);
    EXPECT_EQ(ancestry_of(graph), ancestry) << "what is known is not found again";
    EXPECT_EQ(ancestry_of(towers(1, 1)), nullptr);
  }
  size_t k = 0;
  for (const NodeId a : nodes) {
    for (const NodeId b : nodes) EXPECT_EQ(are_independent(graph, a, b), before[k++]);
  }
}

TEST(FindAll, TriesAndWalksInProportionToTheGraph) {
  const std::vector<const Rule*> rules = every_rule();
  const RuleMatcher matcher(rules);
  for (const int steps : {500, 2500}) {  // 2,000 and 10,000 nodes
    const Graph graph = steps_of_one_cell(steps);
    MatchLimits::Work work;
    matcher.find_all(graph, {.max_tries = 64, .work = &work});
    const size_t each = 64 * rules.size();
    EXPECT_LT(work.tries, graph.num_nodes() * each / 4);
    EXPECT_LT(work.walked, graph.num_nodes() * each);
  }
}

TEST(FindAll, EndsSoonWhenToldTo) {
  const std::vector<const Rule*> rules = every_rule();
  const RuleMatcher matcher(rules);
  const Graph graph = steps_of_one_cell(25'000);  // 100,000 nodes
  MatchLimits::Work work;
  size_t num_asked = 0;
  matcher.find_all(graph, {.should_stop = [&] { return ++num_asked == 3; }, .work = &work});
  EXPECT_EQ(num_asked, 3U);
  EXPECT_LT(work.tries, 200'000U);
  num_asked = 0;
  matcher.find_near(graph, graph.nodes(), {.should_stop = [&] { return ++num_asked == 3; }});
  EXPECT_EQ(num_asked, 3U);
}

}  // namespace
}  // namespace autograph
