// Whatever kernels and layouts are chosen, the numbers are the same: random image networks compiled with random costs,
// so that every variant, reorder, part in place and fused epilogue comes up, against the reference.
#include <gtest/gtest.h>

#include <cstdlib>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/op_def.h"
#include "autograph/random.h"
#include "backends/cpu/cpu_kernels.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/graphs/random_network.h"
#include "support/kernels/random_cost.h"

namespace autograph {
namespace {

// AG_RANDOM_GRAPHS and AG_RANDOM_SEED as for the random graphs.
uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(AnyChoice, OfKernelsAndLayoutsGivesTheSameNumbers) {
  const uint64_t first = from_environment("AG_RANDOM_SEED", 0);
  const uint64_t count = from_environment("AG_RANDOM_GRAPHS", 60);
  size_t with_spaced_rows = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Graph graph = make_random_network(seed);
    Random random(seed);
    const Tensor x = draw_tensor(random, DType::f32, graph.type(graph.inputs()[0]).shape().static_dims());
    CompileOptions reference;
    reference.device = "reference";
    reference.expert.use_passes = false;
    const std::vector<Datum> expected = compile(graph, reference).run({x});
    for (uint64_t choice = 0; choice < 4; ++choice) {
      RandomCost cost(seed * 100 + choice);
      std::string plan;
      const std::vector<Datum> actual = run_with_costs(graph, {x}, cost, plan);
      ASSERT_EQ(difference(actual, expected, {2e-3, 2e-3}), "") << "seed " << seed << ", choice " << choice << "\n"
                                                                << plan;
      with_spaced_rows += plan.find(" every ") != std::string::npos;
    }
  }
  const bool finds_some = count >= 60 && cpu_reorder();
  EXPECT_GE(with_spaced_rows, finds_some ? 1U : 0U) << "no rows were written where they are joined";
}

// Channels together cost nothing but a little more where our own kernel takes them.
class OtherKernelsFirst : public KernelCost {
 public:
  bool is_concurrent() const override { return false; }
  std::vector<double> candidates_us(const KernelCatalog&, const KernelCall&,
                                    std::span<const KernelCandidate> candidates) override {
    std::vector<double> costs;
    for (const KernelCandidate& candidate : candidates) {
      const bool is_together = candidate.variant.output(0) == Layout::channels_last;
      costs.push_back(is_together ? 10 + static_cast<double>(candidate.variant.spaces_rows) : 1000);
    }
    return costs;
  }
  double reorder_us(const KernelCatalog&, const ReorderCall&) override { return 1; }
};

TEST(AnyChoice, PutsChannelsWhereTheyAreJoinedWhenThatSavesACopy) {
  if (!cpu_reorder()) GTEST_SKIP() << "one kernel for each convolution";
  for (const bool is_read_elsewhere : {false, true}) {
    Graph graph;
    Random random(3);
    const Tensor image = draw_tensor(random, DType::f32, {1, 16, 40, 40});
    const Var x = input(graph, DType::f32, Shape::of(image.dims()), "x");
    std::vector<Var> parts;
    for (int k = 0; k < 2; ++k) {
      const Var weights = constant(graph, draw_tensor(random, DType::f32, {32, 16, 1, 1}));
      parts.push_back(apply(get_op("conv"), {x, weights}, {}));
      if (is_read_elsewhere) graph.add_output(parts.back().id());
    }
    graph.add_output(apply(get_op("concat"), parts, {{"axis", int64_t{1}}}).id());
    OtherKernelsFirst cost;
    std::string plan;
    const std::vector<Datum> actual = run_with_costs(graph, {image}, cost, plan);
    EXPECT_EQ(plan.find("cpu.pointwise_conv_simd") != std::string::npos, !is_read_elsewhere) << plan;
    EXPECT_EQ(plan.find(" every 256 bytes") != std::string::npos, !is_read_elsewhere) << plan;
    CompileOptions reference;
    reference.device = "reference";
    EXPECT_EQ(difference(actual, compile(graph, reference).run({image}), {1e-4, 1e-4}), "");
  }
}

}  // namespace
}  // namespace autograph
