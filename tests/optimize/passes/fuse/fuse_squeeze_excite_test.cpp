#include <gtest/gtest.h>

#include <algorithm>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "ops/defs.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

constexpr int64_t kChannels = 16, kSqueezed = 4;

Var parameter(Graph& graph, Random& random, const Dims& dims) {
  return constant(graph, draw_tensor(random, DType::f32, dims, -1, 1));
}

Var conv_1x1(Var x, Random& random, int64_t in, int64_t out) {
  Graph& graph = x.graph();
  return apply(conv_def(), {x, parameter(graph, random, {out, in, 1, 1}), parameter(graph, random, {out})}, {});
}

// image * sigmoid(conv(relu(conv(mean)))), or the factors in the other order.
Graph block(bool swaps, bool reads_squeezed = false) {
  Graph graph;
  Random random(7);
  const Var x = input(graph, DType::f32, {2, kChannels, 5, 6}, "x");
  const Var mean = apply(global_average_pool_def(), {x}, {});
  const Var squeezed = relu(conv_1x1(mean, random, kChannels, kSqueezed));
  const Var gate = sigmoid(conv_1x1(squeezed, random, kSqueezed, kChannels));
  graph.add_output((swaps ? mul(gate, x) : mul(x, gate)).id(), "y");
  if (reads_squeezed) graph.add_output(squeezed.id(), "squeezed");
  return graph;
}

TEST(FuseSqueezeExcite, MakesOneNodeOfTheGate) {
  for (const bool swaps : {false, true}) {
    EXPECT_EQ(ops_of(after_pass(fuse_squeeze_excite, block(swaps))), "fused mul");
  }
}

TEST(FuseSqueezeExcite, LeavesWhatOthersRead) { expect_untouched(fuse_squeeze_excite, block(false, true)); }

TEST(FuseSqueezeExcite, LeavesClassifiers) {
  Graph graph;
  Random random(7);
  const Var x = input(graph, DType::f32, {2, kChannels, 5, 6}, "x");
  const Var mean = apply(global_average_pool_def(), {x}, {});
  graph.add_output(relu(conv_1x1(mean, random, kChannels, kSqueezed)).id(), "y");
  expect_untouched(fuse_squeeze_excite, graph);
}

TEST(FuseSqueezeExcite, RunsAsTheReferenceDoes) {
  const Graph graph = block(false);
  Random random(3);
  const auto inputs = random_inputs(graph, random);
  CompileOptions plain;
  plain.device = "reference";
  plain.expert.use_passes = false;
  const Executable fast = compile(graph);
  EXPECT_EQ(difference(fast.run(inputs), compile(graph, plain).run(inputs), {1e-5, 1e-5}), "");
  const auto choices = fast.kernel_choices();
  EXPECT_TRUE(std::any_of(choices.begin(), choices.end(),
                          [](const KernelChoice& choice) { return choice.kernel.find("cpu.channel_gate_simd") == 0; }));
}

}  // namespace
}  // namespace autograph
