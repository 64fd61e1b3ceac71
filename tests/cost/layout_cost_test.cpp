// What reorders, and kernels that spare them, add to what nodes take by themselves.
#include "cost/layout_cost.h"

#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"

namespace autograph {
namespace {

constexpr double kFastUs = 2;
constexpr double kPlainUs = 20;

// relu is fast in a layout of its own, neg knows row-major tensors alone.
std::vector<KernelVariant> relu_variants(const KernelCall&) {
  return {{.name = "plain", .inputs = {}, .outputs = {}, .cost_us = kPlainUs},
          {.name = "fast", .inputs = {Layout::channels_last}, .outputs = {Layout::channels_last}, .cost_us = kFastUs}};
}

std::string takes_all(const KernelCall&) { return ""; }

class LayoutCostTest : public testing::Test {
 protected:
  // neg, `count` times relu, neg.
  std::vector<double> times(int64_t size, int count) {
    Graph graph("layouts");
    Var y = neg(input(graph, DType::f32, {1, 8, size, size}, "x"));
    for (int i = 0; i < count; ++i) y = relu(y);
    graph.add_output(neg(y).id(), "y");
    const std::vector<LayoutCost> costs = layout_costs(graph, {.catalog = catalog_, .cost = estimates_});
    std::vector<double> us;
    for (const NodeId id : graph.topological_order()) us.push_back(costs[id.index].apply(kFastUs));
    return us;
  }
  double reorder_us(int64_t size) {
    const Type type(DType::f32, Shape({1, 8, size, size}));
    return estimates_.reorder_us(catalog_, {type, Layout::row_major, Layout::channels_last});
  }

  KernelCatalog catalog_{{{.name = "relu", .op = relu_def().name, .why_not = takes_all, .variants = relu_variants},
                          {.name = "neg", .op = neg_def().name, .why_not = takes_all}},
                         [](const ReorderCall&) { return std::unique_ptr<Kernel>(); }};
  KernelCost estimates_;
};

TEST_F(LayoutCostTest, WhoNeedsAReorderHasItsTime) {
  const double us = reorder_us(4);
  ASSERT_LT(kFastUs + 2 * us, kPlainUs);
  const std::vector<double> found = times(4, 2);
  ASSERT_EQ(found.size(), 4U);
  EXPECT_DOUBLE_EQ(found[0], kFastUs);
  EXPECT_DOUBLE_EQ(found[1], kFastUs + us);
  EXPECT_DOUBLE_EQ(found[2], kFastUs);
  EXPECT_DOUBLE_EQ(found[3], kFastUs + us);
}

TEST_F(LayoutCostTest, SlowerKernelsThatSpareReordersHaveTheirTime) {
  ASSERT_GT(kFastUs + 2 * reorder_us(256), kPlainUs);
  EXPECT_EQ(times(256, 1), (std::vector<double>{kFastUs, kPlainUs, kFastUs}));
}

// Planes become pixels as fast as they are copied; more channels are walked through in tiles.
TEST_F(LayoutCostTest, PicturesAreReorderedFaster) {
  const auto us = [&](int64_t channels, int64_t size) {
    const Type type(DType::f32, Shape({1, channels, size, size}));
    return estimates_.reorder_us(catalog_, {type, Layout::row_major, Layout::channels_last});
  };
  EXPECT_LT(us(4, 256), us(16, 128) * 0.6);
}

// What leaves the run is row-major: the last node of all has the time of that.
TEST_F(LayoutCostTest, ReordersOfOutputsAreTheirMakers) {
  Graph graph("output");
  const Var y = relu(input(graph, DType::f32, {1, 8, 4, 4}, "x"));
  graph.add_output(y.id(), "y");
  const std::vector<LayoutCost> costs = layout_costs(graph, {.catalog = catalog_, .cost = estimates_});
  EXPECT_DOUBLE_EQ(costs[graph.nodes().front().index].apply(kFastUs), kFastUs + 2 * reorder_us(4));
}

}  // namespace
}  // namespace autograph
