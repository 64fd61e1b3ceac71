// The pass fuse_experts.
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

struct Mixture {
  int64_t experts = 4, chosen = 2;
  float background = 0;      // what the factors of the others are
  bool keeps_inner = false;  // an expert's result is an output, too
  bool splits = true;
};

Graph mixture(const Mixture& how) {
  Graph graph("mixture");
  Random random(7);
  const auto weight = [&](int64_t rows, int64_t columns) {
    return constant(graph, draw_tensor(random, DType::f32, {rows, columns}, -1, 1));
  };
  const Var x = input(graph, DType::f32, Shape{2, 3, 4}, "x");
  const Var scores = matmul(x, weight(4, how.experts));
  const auto [best, which] = top_k(scores, how.chosen);
  const Var others = mul(scores, scalar(graph, how.background));
  const Var factors = scatter_elements(others, which, softmax(best), -1);
  std::vector<Var> pieces;
  if (how.splits) pieces = split_evenly(factors, how.experts, -1);
  std::vector<Var> terms;
  for (int64_t i = 0; i < how.experts; ++i) {
    const Var hidden = mul(swish(matmul(x, weight(4, 8)), 1), matmul(x, weight(4, 8)));
    const Var result = matmul(hidden, weight(8, 4));
    if (how.keeps_inner && i == 1) graph.add_output(result.id());
    const Var factor = how.splits ? pieces[static_cast<size_t>(i)] : slice(factors, {i}, {i + 1}, {2});
    terms.push_back(mul(result, factor));
  }
  graph.add_output(sum(terms).id());
  return graph;
}

TEST(FuseExperts, MakesOneNodeOfAll) {
  const Graph after = after_pass(fuse_experts, mixture({}), true, {1e-4, 1e-5});
  const std::string ops = ops_of(after);
  EXPECT_NE(ops.find("fused"), std::string::npos) << ops;
  EXPECT_EQ(ops.find("sum"), std::string::npos) << ops;
  EXPECT_EQ(ops.find("swish"), std::string::npos) << ops;
}

TEST(FuseExperts, LeavesMixturesInWhichMostCount) {
  expect_untouched(fuse_experts, mixture({.chosen = 3}));
  expect_untouched(fuse_experts, mixture({.background = 0.5F}));
}

TEST(FuseExperts, LeavesWhatIsReadElsewhere) { expect_untouched(fuse_experts, mixture({.keeps_inner = true})); }

TEST(FuseExperts, LeavesFactorsFromElsewhere) { expect_untouched(fuse_experts, mixture({.splits = false})); }

}  // namespace
}  // namespace autograph
