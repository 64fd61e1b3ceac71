// Whatever kernels and layouts are chosen, the numbers are the same: random image networks compiled with random costs,
// so that every variant, reorder, part in place and fused epilogue comes up, against the reference.
#include <gtest/gtest.h>

#include <cstdlib>

#include "autograph/verify.h"
#include "engine/backends.h"
#include "engine/executable.h"
#include "ops/sample.h"
#include "runtime/run_context.h"
#include "support/compare.h"
#include "support/random_network.h"

namespace autograph {
namespace {

// Costs out of a hat.
class RandomCost : public KernelCost {
 public:
  explicit RandomCost(uint64_t seed) : random_(seed) {}
  bool is_concurrent() const override { return false; }
  std::vector<double> offers_us(const KernelCatalog&, const KernelCall&, std::span<const Offer> offers) override {
    std::vector<double> costs;
    for (size_t i = 0; i < offers.size(); ++i) costs.push_back(draw_cost());
    return costs;
  }
  double reorder_us(const KernelCatalog&, const ReorderCall&) override { return draw_cost() / 4; }

 private:
  double draw_cost() { return std::uniform_real_distribution<double>(1, 100)(random_); }
  Random random_;
};

std::vector<Datum> run_with(const Graph& source, const Tensor& x, KernelCost& cost, std::string& plan_text) {
  const Device& device = get_device("cpu");
  Graph graph = prepare_graph(source, device, {});
  const KnownValues known = infer_types(graph);
  const auto compiled =
      compile_plan(std::make_shared<const Graph>(std::move(graph)), known, {.catalog = device.catalog, .cost = &cost});
  plan_text = print_plan(compiled->plan, *compiled->graph);
  RunContext context(compiled);
  context.bind_input(0, x);
  std::vector<Datum> outputs;
  for (size_t k = 0; k < compiled->plan.outputs.size(); ++k) {
    const SlotIndex slot = compiled->plan.outputs[k].slot;
    Tensor out = Tensor::empty(DType::f32, compiled->slot_dims[slot]);
    context.bind_output(k, out.mutable_raw());
    outputs.emplace_back(std::move(out));
  }
  const RunOptions options{.catalog = device.catalog, .run_nested = nullptr};
  // Twice: what a run leaves behind in the arena must not matter to the next.
  context.run(options, nullptr);
  context.run(options, nullptr);
  return outputs;
}

// AG_RANDOM_GRAPHS and AG_RANDOM_SEED as for the random graphs.
uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(AnyChoice, OfKernelsAndLayoutsGivesTheSameNumbers) {
  const uint64_t first = from_environment("AG_RANDOM_SEED", 0);
  const uint64_t count = from_environment("AG_RANDOM_GRAPHS", 60);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Graph graph = make_random_network(seed);
    Random random(seed);
    const Tensor x = draw_tensor(random, DType::f32, graph.type(graph.inputs()[0]).shape().static_dims());
    CompileOptions reference;
    reference.device = "reference";
    reference.optimize = false;
    const std::vector<Datum> expected = compile(graph, reference).run({x});
    for (uint64_t choice = 0; choice < 4; ++choice) {
      RandomCost cost(seed * 100 + choice);
      std::string plan;
      const std::vector<Datum> actual = run_with(graph, x, cost, plan);
      ASSERT_EQ(difference(actual, expected, {2e-3, 2e-3}), "") << "seed " << seed << ", choice " << choice << "\n"
                                                                << plan;
    }
  }
}

}  // namespace
}  // namespace autograph
