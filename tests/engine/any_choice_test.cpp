// Whatever kernels and layouts are chosen, the numbers are the same: random image networks compiled with random costs,
// so that every variant, reorder, part in place and fused epilogue comes up, against the reference.
#include <gtest/gtest.h>

#include <cstdlib>

#include "autograph/compile.h"
#include "autograph/random.h"
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
    }
  }
}

}  // namespace
}  // namespace autograph
