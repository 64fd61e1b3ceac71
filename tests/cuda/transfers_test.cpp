// States that wait in page-locked memory of the host: their copies are part of the graph.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "autograph/ops/linear.h"
#include "autograph/random.h"
#include "autograph/train.h"
#include "cuda/cuda_test_device.h"
#include "ops/sample.h"

namespace autograph {
namespace {

Tensor draw_matrix(uint64_t seed, Dims dims) {
  Random random(seed);
  return draw_tensor(random, DType::f32, std::move(dims), -1, 1);
}

// A step of training by Adam: four weights and two moments of each.
Graph adam_step() {
  Graph model("model");
  Var y = input(model, DType::f32, {4, 64}, "x");
  for (uint64_t k = 0; k < 4; ++k) y = matmul(y, constant(model, draw_matrix(k, {64, 64}), fmt::format("w{}", k)));
  model.add_output(y.id(), "scores");
  return training_graph(model, {.optimizer = Adam{.learning_rate = 0.1}});
}

TEST_F(CudaTest, CapturesTransfersOfColdStates) {
  const Graph step = adam_step();
  const Executable warm = compile(step, on_cuda());
  CompileOptions options = on_cuda();
  options.memory_budget_bytes = warm.memory().arena_bytes + (12 - 4) * 64 * 64 * sizeof(float) + 1024;
  const standin::Counts before = standin::counts();
  {
    const Executable cold = compile(step, options);
    EXPECT_NE(cold.print_plan().find("copy [to host]"), std::string::npos);
    const std::vector<Datum> batch{draw_matrix(2, {4, 64}), Tensor::vector({1, 4, 0, 60})};
    for (int run = 0; run < 4; ++run) {
      EXPECT_TRUE(cold.run(batch)["loss"].bitwise_equal(warm.run(batch)["loss"])) << "run " << run;
    }
    for (const std::string& name : cold.states().names()) {
      EXPECT_TRUE(cold.states().get(name).bitwise_equal(warm.states().get(name))) << name;
    }
    const standin::Counts now = standin::counts();
    EXPECT_GT(now.pinned, before.pinned);
    EXPECT_EQ(now.captures - before.captures, 2U) << "one each";
    EXPECT_EQ(now.replays - before.replays, 6U);
  }
}

TEST_F(CudaTest, KnowsItsPageLockedMemory) {
  const Memory& memory = *get_device("cuda").memory();
  const size_t before = standin::counts().pinned;
  {
    const Buffer piece = Buffer::for_transfers(1000, memory);
    EXPECT_TRUE(piece.is_on_host());
    EXPECT_TRUE(memory.is_for_transfers(piece.data(), 1000));
    EXPECT_TRUE(memory.is_for_transfers(static_cast<char*>(piece.data()) + 900, 100));
    EXPECT_FALSE(memory.is_for_transfers(static_cast<char*>(piece.data()) + 900, 101));
    const Tensor other = draw_matrix(1, {10, 25});
    EXPECT_FALSE(memory.is_for_transfers(other.raw(), 1000));
    EXPECT_EQ(standin::counts().pinned, before + 1);
  }
  EXPECT_EQ(standin::counts().pinned, before);
}

}  // namespace
}  // namespace autograph
