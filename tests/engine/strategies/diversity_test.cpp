// Distances of graphs, and the order in which to try them: variants of one graph come last.
#include "engine/strategies/diversity.h"

#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/random.h"
#include "support/graphs/random_graph.h"

namespace autograph {
namespace {

// Products of `sizes`, one behind the other, with `num_small` small nodes at the end.
Graph chain(const std::vector<int64_t>& sizes, int num_small) {
  Graph graph("chain");
  Var x = input(graph, DType::f32, {4, sizes.front()}, "x");
  for (size_t i = 1; i < sizes.size(); ++i) {
    x = matmul(x, constant(graph, Tensor::zeros(DType::f32, {sizes[i - 1], sizes[i]})));
  }
  for (int i = 0; i < num_small; ++i) x = sigmoid(x);
  graph.add_output(x.id(), "y");
  return graph;
}

Composition composition_of(const Graph& graph) {
  return Composition(graph, [&](NodeId id) { return graph.node(id).op().traits.anchor ? 100.0 : 1.0; });
}

TEST(Diversity, DistanceIsTheShareOfWorkThatOneAloneDoes) {
  const Composition four = composition_of(chain({8, 8, 8, 8, 8}, 0));
  EXPECT_EQ(four.distance(four), 0);
  // The first product reads an input, the others a product.
  const Composition three = composition_of(chain({8, 8, 8, 8}, 0));
  EXPECT_NEAR(four.distance(three), 100.0 / 700, 1e-12);
  const Composition other = composition_of(chain({16, 16, 16}, 0));
  EXPECT_EQ(four.distance(other), 1);
  EXPECT_NEAR(four.distance(composition_of(chain({8, 8, 8, 8, 8}, 1))), 1.0 / 801, 1e-12);
}

TEST(Diversity, DistanceIsThatOfBothWays) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    const Composition a = composition_of(make_random_graph(random, 20).graph);
    const Composition b = composition_of(make_random_graph(random, 20).graph);
    EXPECT_NEAR(a.distance(b), b.distance(a), 1e-12);
    EXPECT_GE(a.distance(b), 0);
    EXPECT_LE(a.distance(b), 1 + 1e-12);
  }
}

TEST(Diversity, VariantsOfOneGraphComeLast) {
  std::vector<Composition> graphs;
  for (const int num_small : {0, 1, 2, 3}) graphs.push_back(composition_of(chain({8, 8, 8, 8, 8}, num_small)));
  graphs.push_back(composition_of(chain({8, 16, 8}, 0)));
  graphs.push_back(composition_of(chain({8, 16, 8}, 1)));
  EXPECT_EQ(diverse_order(graphs), (std::vector<size_t>{0, 4, 1, 2, 3, 5}));
}

}  // namespace
}  // namespace autograph
