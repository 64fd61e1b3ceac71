// Copies that are part of the graph: of states that wait in page-locked memory of the host, and of inputs and outputs
// beside the steps.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/random.h"
#include "autograph/train.h"
#include "cuda/cuda_test_device.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/graphs/random_schedule.h"

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

// ---- Inputs and outputs --------------------------------------------------------------------------------------------

// `b` is read behind five kernels, `first` is there before the last five.
Graph with_late_input() {
  Graph graph("late");
  const Var first = softmaxes(input(graph, DType::f32, {4, 4}, "x"), 5);
  graph.add_output(first.id(), "first");
  graph.add_output(softmaxes(first + input(graph, DType::f32, {4, 4}, "b"), 4).id(), "y");
  return graph;
}

std::vector<Datum> draw_inputs(uint64_t seed, size_t count) {
  std::vector<Datum> inputs;
  for (size_t i = 0; i < count; ++i) inputs.emplace_back(draw_matrix(10 * seed + i, {4, 4}));
  return inputs;
}

class CudaCopies : public CudaTest {
 protected:
  // What the device does for one run, in order.
  static std::vector<std::string> record_of(const Executable& there, const std::vector<Datum>& inputs) {
    standin::keep_record(true);
    there.run(inputs);
    standin::keep_record(false);
    return standin::take_record();
  }
  static size_t place_of(const std::vector<std::string>& record, std::string_view name, size_t number) {
    size_t at = 0;
    for (size_t found = 0; at < record.size(); ++at) {
      if (record[at] == name && found++ == number) break;
    }
    return at;
  }
};

// The stand-in does first what was captured last, as far as edges allow, or first what was captured first.
TEST_F(CudaCopies, RunBesideTheSteps) {
  const size_t pinned = standin::counts().pinned;
  {
    const Executable there = compile(with_late_input(), on_cuda());
    const Executable here = compile(with_late_input(), on_reference());
    for (uint64_t run = 0; run < 4; ++run) {
      const std::vector<Datum> inputs = draw_inputs(run, 2);
      EXPECT_EQ(difference(there.run(inputs), here.run(inputs)), "") << "run " << run;
    }
    const std::vector<Datum> inputs = draw_inputs(1, 2);
    const std::vector<std::string> late = record_of(there, inputs);
    EXPECT_EQ(place_of(late, "copy in", 0), 0U) << "what the first step reads";
    EXPECT_EQ(place_of(late, "copy in", 1), 7U) << testing::PrintToString(late);
    ::setenv("AG_STANDIN_FIRST", "1", 1);
    const std::vector<std::string> early = record_of(there, inputs);
    ::unsetenv("AG_STANDIN_FIRST");
    EXPECT_EQ(place_of(early, "copy in", 1), 1U) << testing::PrintToString(early);
    EXPECT_EQ(place_of(early, "copy out", 0), 7U) << testing::PrintToString(early);
    EXPECT_EQ(place_of(early, "copy out", 1) + 1, early.size()) << testing::PrintToString(early);
    EXPECT_EQ(difference(there.run(inputs), here.run(inputs)), "");
  }
  EXPECT_EQ(standin::counts().pinned, pinned);
}

// What arrives and leaves on streams of their own, for steps on several streams.
TEST_F(CudaCopies, WaitForAndAreWaitedForOnEveryStream) {
  Graph graph("streams");
  std::vector<Var> sums;
  for (int k = 0; k < 4; ++k) sums.push_back(softmaxes(input(graph, DType::f32, {4, 4}, fmt::format("x{}", k)), 2));
  for (size_t k = 0; k < 4; ++k) {
    sums[k] = softmax(sums[k] + sums[(k + 1) % 4], 0) + input(graph, DType::f32, {4, 4}, fmt::format("b{}", k));
    graph.add_output(sums[k].id(), fmt::format("y{}", k));
  }
  graph.add_output(softmaxes(sums[0] + sums[3], 2).id(), "last");
  const Executable here = compile(graph, on_reference());
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Random random(seed);
    CompileOptions options = on_cuda();
    options.expert.schedule = std::make_shared<Schedule>(make_random_schedule(random, graph, 4, 1));
    const Executable there = compile(graph, options);
    for (uint64_t run = 0; run < 4; ++run) {
      const std::vector<Datum> inputs = draw_inputs(run, 8);
      EXPECT_EQ(difference(there.run(inputs), here.run(inputs)), "") << "seed " << seed << " run " << run;
    }
  }
}

// Each piece between steps on the host has the copies of its own steps.
TEST_F(CudaCopies, RunBesideThePiecesOfAPlan) {
  Graph graph("pieces");
  const Var first = softmaxes(input(graph, DType::f32, {4, 4}, "x"), 5);
  graph.add_output(first.id(), "first");
  const Var second = softmaxes(first * column_on_host(first), 3) + input(graph, DType::f32, {4, 4}, "b");
  graph.add_output(second.id(), "second");
  graph.add_output(softmaxes(second, 3).id(), "y");
  const Executable there = compile(graph, on_cuda());
  const Executable here = compile(graph, on_reference());
  for (uint64_t run = 0; run < 4; ++run) {
    const std::vector<Datum> inputs = draw_inputs(run, 2);
    EXPECT_EQ(difference(there.run(inputs), here.run(inputs)), "") << "run " << run;
  }
}

// Memory of the caller may be the output of one run and an input of the next.
TEST_F(CudaCopies, MayGoBackToWhereTheyCameFrom) {
  const Executable there = compile(with_late_input(), on_cuda());
  const Executable here = compile(with_late_input(), on_reference());
  std::vector<Tensor> inputs{draw_matrix(1, {4, 4}), draw_matrix(2, {4, 4})};
  std::vector<Tensor> outputs{draw_matrix(3, {4, 4}), draw_matrix(4, {4, 4})};
  for (int run = 0; run < 5; ++run) {
    const std::vector<Datum> expected = here.run({inputs[0], inputs[1]});
    there.run_into(inputs, outputs);
    EXPECT_EQ(difference({outputs[0], outputs[1]}, expected), "") << "run " << run;
    std::swap(inputs, outputs);
  }
}

// On the device they stay where they are, and what the host has is copied beside.
TEST_F(CudaCopies, AreNoneOfWhatLiesOnTheDevice) {
  const Executable there = compile(with_late_input(), on_cuda());
  const std::vector<Datum> inputs = draw_inputs(5, 2);
  const std::vector<Datum> expected = compile(with_late_input(), on_reference()).run(inputs);
  const Memory* memory = get_device("cuda").memory();
  std::vector<Tensor> outputs{Tensor::empty(DType::f32, {4, 4}, memory), Tensor::empty(DType::f32, {4, 4})};
  const std::vector<Tensor> mixed{inputs[0].tensor().to(memory), inputs[1].tensor()};
  for (int run = 0; run < 3; ++run) {
    standin::keep_record(true);
    there.run_into(mixed, outputs);
    standin::keep_record(false);
    const std::vector<std::string> record = standin::take_record();
    EXPECT_EQ(std::count(record.begin(), record.end(), "copy in"), 1) << testing::PrintToString(record);
    EXPECT_EQ(std::count(record.begin(), record.end(), "copy out"), 1) << testing::PrintToString(record);
    EXPECT_EQ(difference({outputs[0].to_host(), outputs[1]}, expected), "") << "run " << run;
  }
}

// Without overlapping copies where a launch is looked at step by step.
TEST_F(CudaCopies, ComeBeforeStepsThatAreLookedAt) {
  CompileOptions options = on_cuda();
  options.check_nan = NanCheck::steps;
  const Executable there = compile(with_late_input(), options);
  const Executable here = compile(with_late_input(), on_reference());
  const std::vector<Datum> inputs = draw_inputs(3, 2);
  for (int run = 0; run < 3; ++run) EXPECT_EQ(difference(there.run(inputs), here.run(inputs)), "");
}

}  // namespace
}  // namespace autograph
