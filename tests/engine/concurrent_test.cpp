// Several threads on one executable, and several compilations at once: what the thread sanitizer has to look at. The
// graph goes through oneDNN, own kernels, a nested graph and steps whose shapes are known only while running.
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"

namespace autograph {
namespace {

constexpr size_t kThreads = 6;
using Doubles = std::vector<double>;

void on_threads(const std::function<void(size_t)>& work) {
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) threads.emplace_back([&work, t] { work(t); });
  for (std::thread& thread : threads) thread.join();
}

CompileOptions with_profile() {
  CompileOptions options;
  options.threads = 2;
  options.profile = true;
  return options;
}

// The sum of each 2 x 2 window, the largest of these, times 3: 12 for an image of ones.
Graph image_graph() {
  Graph graph("image");
  const Var x = input(graph, DType::f32, {Dim::symbol("batch"), 1, 4, 4}, "x");
  const Var ones = constant(graph, Tensor::of<float>({1, 1, 2, 2}, {1, 1, 1, 1}));
  PoolOptions pool;
  pool.kernel = {3, 3};
  const Var largest = reshape(max_pool(conv(x, ones), pool), {-1, 1});
  graph.add_output(matmul(largest, constant(graph, Tensor::of<float>({1, 1}, {3}))).id(), "y");
  return graph;
}

// Appends the positive elements of x to themselves when asked to.
Graph branching_graph() {
  const auto branch = [](size_t times) {
    auto graph = std::make_shared<Graph>();
    const Var x = input(*graph, DType::f32, Shape::of_rank(1), "x");
    graph->add_output(concat(std::vector<Var>(times, x), 0).id(), "y");
    return GraphRef(graph);
  };
  Graph graph("branching");
  const Var condition = input(graph, DType::boolean, {}, "condition");
  const Var x = input(graph, DType::f32, {3}, "x");
  const Var positive = gather(x, squeeze(non_zero(relu(x)), {0}));
  const Attributes branches{{"then_branch", branch(2)}, {"else_branch", branch(1)}};
  graph.add_output(apply_all(get_op("if"), {condition, positive}, branches, 1)[0].id(), "y");
  return graph;
}

Doubles run_image(const Executable& executable, int64_t batch, float value) {
  const Tensor x = Tensor::of<float>({batch, 1, 4, 4}, std::vector<float>(static_cast<size_t>(batch) * 16, value));
  return executable.run({x})[0].tensor().to_f64();
}

TEST(Concurrent, RunsOfOneExecutableDoNotMeet) {
  const Executable executable = compile(image_graph(), with_profile());
  on_threads([&](size_t t) {
    for (int64_t round = 0; round < 20; ++round) {
      const int64_t batch = 1 + (static_cast<int64_t>(t) + round) % 3;
      EXPECT_EQ(run_image(executable, batch, static_cast<float>(t)), Doubles(static_cast<size_t>(batch), 12.0 * t));
    }
  });
}

TEST(Concurrent, ReportsCanBeReadWhileOthersRun) {
  const Executable executable = compile(image_graph(), with_profile());
  run_image(executable, 1, 1);
  on_threads([&](size_t t) {
    for (int round = 0; round < 20; ++round) {
      if (t % 2 == 0) {
        EXPECT_EQ(run_image(executable, 1 + round % 2, 1).front(), 12);
        continue;
      }
      EXPECT_FALSE(executable.profile().empty());
      EXPECT_FALSE(executable.kernel_choices().empty());
      EXPECT_GT(executable.memory().arena_bytes, 0U);
      EXPECT_NE(executable.print_plan().find("conv"), std::string::npos);
    }
  });
}

TEST(Concurrent, NestedGraphsAndDynamicShapesAreSharedToo) {
  const Executable executable = compile(branching_graph(), with_profile());
  const Tensor x = Tensor::of<float>({3}, {5, -1, 7});
  on_threads([&](size_t t) {
    for (int round = 0; round < 20; ++round) {
      const bool twice = (t + static_cast<size_t>(round)) % 2 == 0;
      const Doubles y = executable.run({Tensor::scalar(twice), x})[0].tensor().to_f64();
      EXPECT_EQ(y, twice ? (Doubles{5, 7, 5, 7}) : (Doubles{5, 7}));
    }
  });
}

TEST(Concurrent, ErrorsReachTheThreadThatMadeThem) {
  const Executable executable = compile(image_graph(), with_profile());
  on_threads([&](size_t t) {
    for (int round = 0; round < 20; ++round) {
      if (t % 2 == 0) {
        EXPECT_EQ(run_image(executable, 1, 2).front(), 24);
      } else {
        EXPECT_THROW(executable.run({Tensor::zeros(DType::f32, {1, 2, 4, 4})}), ShapeError);
      }
    }
  });
}

TEST(Concurrent, GraphsAreBuiltAndCompiledOnManyThreads) {
  on_threads([](size_t t) {
    const Executable image = compile(image_graph(), with_profile());
    EXPECT_EQ(run_image(image, 1, static_cast<float>(t)).front(), 12.0 * t);
    const Executable branching = compile(branching_graph(), with_profile());
    EXPECT_EQ(branching.run({Tensor::scalar(false), Tensor::of<float>({3}, {0, 4, 0})})[0].tensor().to_f64(),
              (Doubles{4}));
  });
}

}  // namespace
}  // namespace autograph
