#include <gtest/gtest.h>
#include <functional>

#include "autograph/ops/elementwise.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

constexpr int64_t kGroups = 2;
const Dims kDims{3, 6, 4, 5};

Var parameter(Graph& graph, Dims dims, double low = 1.1, double high = 2) {
  Random random(static_cast<Random::result_type>(dims.size()));
  return constant(graph, draw_tensor(random, DType::f32, std::move(dims), low, high));
}

// The normalization without what follows it.
Var grouped(Graph& graph, Var x, const std::vector<int64_t>& back = kDims, Dims parameters = {kGroups}) {
  const Var rows = reshape(x, {0, kGroups, -1});
  const Var scale = parameter(graph, parameters);
  return reshape(instance_normalization(rows, scale, parameter(graph, parameters, -1, 1), 1e-3F), back);
}

Graph spelled(const std::function<Var(Graph&, Var)>& tail) {
  Graph graph;
  const Var x = input(graph, DType::f32, Shape::of(kDims), "x");
  graph.add_output(tail(graph, grouped(graph, x)).id());
  return graph;
}

TEST(FuseGroupNorm, FindsItWithItsParametersOnEitherSide) {
  for (const Dims& dims : {Dims{6, 1, 1}, Dims{1, 6, 1, 1}, Dims{1}, Dims{}}) {
    const Graph after = after_pass(fuse_group_norm, spelled([&](Graph& graph, Var y) {
                                     return add(parameter(graph, dims), mul(y, parameter(graph, dims)));
                                   }));
    EXPECT_EQ(ops_of(after), "group_normalization");
    EXPECT_EQ(only_node(after).attributes().integer("num_groups"), kGroups);
    EXPECT_FLOAT_EQ(only_node(after).attributes().real("epsilon"), 1e-3F);
  }
}

TEST(FuseGroupNorm, TakesWhatIsThere) {
  EXPECT_EQ(ops_of(after_pass(fuse_group_norm, spelled([](Graph&, Var y) { return y; }))), "group_normalization");
  EXPECT_EQ(ops_of(after_pass(fuse_group_norm, spelled([](Graph& graph, Var y) {
                                return add(y, parameter(graph, {6, 1, 1}));
                              }))),
            "group_normalization");
  // A factor along another axis stays.
  EXPECT_EQ(
      ops_of(after_pass(fuse_group_norm, spelled([](Graph& graph, Var y) { return mul(y, parameter(graph, {5})); }))),
      "group_normalization mul");
}

TEST(FuseGroupNorm, LeavesAloneWhatIsSomethingElse) {
  // Another shape behind it.
  Graph turned;
  const Var x = input(turned, DType::f32, Shape::of(kDims), "x");
  turned.add_output(grouped(turned, x, {3, 4, 6, 5}).id());
  expect_untouched(fuse_group_norm, turned);
  // Groups that span instances.
  Graph joined;
  const Var z = input(joined, DType::f32, Shape::of(kDims), "x");
  const Var rows = reshape(z, {1, 6, -1});
  const Var normal = instance_normalization(rows, parameter(joined, {6}), parameter(joined, {6}));
  joined.add_output(reshape(normal, kDims).id());
  expect_untouched(fuse_group_norm, joined);
  // A product whose parameters overflow together.
  expect_untouched(fuse_group_norm,
                   spelled([](Graph& graph, Var y) { return mul(y, constant(graph, Tensor::scalar(3.3e38F))); }));
}

}  // namespace
}  // namespace autograph
