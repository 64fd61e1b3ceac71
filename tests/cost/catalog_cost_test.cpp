// What searches ask kernels about a node by itself.
#include "cost/catalog_cost.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "autograph/graph.h"
#include "autograph/ops/activation.h"
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

std::vector<KernelVariant> a_microsecond_for_an_element(const KernelCall& call) {
  KernelVariant variant;
  variant.cost_us = static_cast<double>(call.inputs[0].shape().num_elements().value_or(0));
  return {variant};
}

// Kernels of relu and tanh that are estimated to take a microsecond for each element.
KernelCatalog catalog_of_estimates() {
  KernelDef relus{.name = "relus", .op = relu_def().name, .why_not = [](const KernelCall&) { return std::string(); }};
  relus.variants = a_microsecond_for_an_element;
  KernelDef tanhs = relus;
  tanhs.name = "tanhs";
  tanhs.op = tanh_def().name;
  return KernelCatalog({relus, tanhs});
}

// As if measured: twice the estimate, a hundredth of it for relu where that is asked for. Notes what it is asked about.
class NotedMeasurements : public KernelCost {
 public:
  explicit NotedMeasurements(double relu_factor = 2) : relu_factor_(relu_factor) {}
  std::vector<double> candidates_us(const KernelCatalog&, const KernelCall& call,
                                    std::span<const KernelCandidate> candidates) override {
    asked.push_back(fmt::format("{} {}", call.op.name, call.inputs[0].shape().num_elements().value_or(0)));
    return {candidates[0].variant.cost_us * (&call.op == &relu_def() ? relu_factor_ : 2)};
  }
  std::vector<std::string> asked;

 private:
  double relu_factor_;
};

NodeId add_relu(Graph& graph, int64_t elements) {
  const Var y = relu(input(graph, DType::f32, Shape{elements}, fmt::format("x{}", graph.num_nodes())));
  return graph.value(y.id()).producer();
}

using Asked = std::vector<std::string>;

TEST(CatalogCost, MeasuresWhatTakesTheLargestShareFirst) {
  Graph graph;
  for (const int64_t elements : {10, 30, 30, 100, 30, 30, 30}) add_relu(graph, elements);
  const KernelCatalog catalog = catalog_of_estimates();
  NotedMeasurements times;
  CatalogCost cost({.catalog = catalog, .cost = times});
  cost.measure(graph, 1);
  EXPECT_EQ(times.asked, (Asked{"relu 30", "relu 100", "relu 10"}));
  cost.measure(graph, 1);
  EXPECT_EQ(times.asked.size(), 3U) << "what is known is not measured again";
}

TEST(CatalogCost, EstimatesTheRestByWhatWasMeasured) {
  Graph graph;
  const NodeId small = add_relu(graph, 10), large = add_relu(graph, 100);
  const KernelCatalog catalog = catalog_of_estimates();
  NotedMeasurements times;
  const auto once = [&](double) { return times.asked.empty(); };
  CatalogCost cost({.catalog = catalog, .cost = times, .may_measure = once});
  cost.measure(graph, 1);
  EXPECT_EQ(times.asked, Asked{"relu 100"});
  EXPECT_EQ(cost.node_us(graph, large, 1), 200);
  EXPECT_NEAR(cost.node_us(graph, small, 1), 20, 1e-9);
}

// An op whose calls take far less than estimated does not take the time of all others.
TEST(CatalogCost, LearnsWhatIsWorthMeasuring) {
  Graph graph;
  for (const int64_t elements : {80, 90, 100}) add_relu(graph, elements);
  tanh(input(graph, DType::f32, Shape{50}, "x"));
  const KernelCatalog catalog = catalog_of_estimates();
  NotedMeasurements times(0.01);
  CatalogCost(CatalogCostOptions{.catalog = catalog, .cost = times}).measure(graph, 1);
  EXPECT_EQ(times.asked, (Asked{"relu 100", "tanh 50", "relu 90", "relu 80"}));
}

TEST(CatalogCost, LeavesOutWhatTakesTooLongToMeasure) {
  Graph graph;
  const NodeId slow = add_relu(graph, 1'000'000);
  add_relu(graph, 10);
  const KernelCatalog catalog = catalog_of_estimates();
  NotedMeasurements times;
  const auto within_a_second = [](double seconds) { return seconds < 1; };
  CatalogCost cost({.catalog = catalog, .cost = times, .may_measure = within_a_second});
  cost.measure(graph, 1);
  cost.node_us(graph, slow, 1);
  EXPECT_EQ(times.asked, Asked{"relu 10"});
}

}  // namespace
}  // namespace autograph
