// What is asked about while kernels are chosen.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <map>
#include <string>

#include "autograph/builder.h"
#include "autograph/devices.h"
#include "autograph/op_def.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "autograph/verify.h"
#include "ops/sample.h"
#include "runtime/compiled_plan.h"

namespace autograph {
namespace {

// Estimates, and how often each reorder was asked about.
class Counted : public KernelCost {
 public:
  bool is_concurrent() const override { return false; }
  double reorder_us(const KernelCatalog& catalog, const ReorderCall& call) override {
    ++asked[fmt::format("{} {} to {}", to_string(call.type), to_string(call.from), to_string(call.to))];
    return KernelCost::reorder_us(catalog, call);
  }
  std::map<std::string, int> asked;
};

// Two convolutions have a dozen kernels each, and few layouts among them.
TEST(ChooseKernels, AsksOnceAboutEachReorderOfATensor) {
  Random random(3);
  Graph graph;
  const auto weights = [&](Dims dims) { return constant(graph, draw_tensor(random, DType::f32, std::move(dims))); };
  ConvOptions options;
  options.pads = {1, 1, 1, 1};
  const Var x = input(graph, DType::f32, {1, 16, 14, 15}, "x");
  const Var y = conv(x, weights({32, 16, 3, 3}), {}, options);
  graph.add_output(conv(y, weights({48, 32, 3, 3}), {}, options).id());
  const Device& device = get_device("cpu");
  if (!device.catalog().can_reorder()) GTEST_SKIP() << "row-major tensors alone";
  Counted cost;
  const KnownValues known = infer_types(graph);
  compile_plan(std::make_shared<const Graph>(std::move(graph)), known, {.catalog = device.catalog(), .cost = &cost});
  EXPECT_FALSE(cost.asked.empty());
  for (const auto& [reorder, times] : cost.asked) EXPECT_EQ(times, 1) << reorder;
}

}  // namespace
}  // namespace autograph
