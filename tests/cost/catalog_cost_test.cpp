// What searches ask kernels about a node by itself.
#include "cost/catalog_cost.h"

#include <gtest/gtest.h>

#include "autograph/graph.h"
#include "autograph/ops/linear.h"
#include "ops/defs.h"

namespace autograph {
namespace {

size_t told_bytes = 0;

KernelDef listening_kernel() {
  return {.name = "listening", .op = matmul_def().name, .why_not = [](const KernelCall& call) {
            told_bytes = call.plan_constant_bytes;
            return std::string();
          }};
}

// Some kernels read weights ahead where no cache holds all of a plan.
TEST(CatalogCost, TellsKernelsTheConstantsOfTheWholeGraph) {
  Graph graph("two products");
  const Var x = input(graph, DType::f32, {2, 8}, "x");
  const Var hidden = matmul(x, constant(graph, Tensor::zeros(DType::f32, {8, 16})));
  graph.add_output(matmul(hidden, constant(graph, Tensor::zeros(DType::f32, {16, 4}))).id(), "y");
  const KernelCatalog catalog({listening_kernel()});
  KernelCost estimates;
  CatalogCost cost({.catalog = catalog, .cost = estimates});
  for (const NodeId node : graph.nodes()) {
    told_bytes = 0;
    cost.node_us(graph, node, 1);
    EXPECT_EQ(told_bytes, (8 * 16 + 16 * 4) * sizeof(float));
  }
}

}  // namespace
}  // namespace autograph
