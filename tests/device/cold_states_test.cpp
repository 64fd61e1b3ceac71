// States for which a budget leaves no room on the device: they wait on the host, and travel around the steps that use
// them.
#include <gtest/gtest.h>

#include <algorithm>

#include "autograph/compile.h"
#include "autograph/devices.h"
#include "autograph/error.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/random.h"
#include "install/backend/toy_device.h"
#include "ops/sample.h"
#include "support/graphs/random_schedule.h"
#include "support/message_of.h"

namespace autograph {
namespace {

using toy::toy_memory;

constexpr int64_t kExtent = 1024;
constexpr size_t kStateBytes = kExtent * sizeof(float);

class ColdToy : public toy::ToyDevice {
 public:
  ColdToy() : ToyDevice("cold toy") {}
  std::string identity() const override { return name(); }
};

CompileOptions on_cold_toy(size_t budget_bytes = 0) {
  static const Device& device = add_device(std::make_unique<ColdToy>());
  CompileOptions options;
  options.device = device.name();
  options.memory_budget_bytes = budget_bytes;
  return options;
}

Tensor draw_vector(uint64_t seed) {
  Random random(seed);
  return draw_tensor(random, DType::f32, {kExtent}, -1, 1);
}

// A weight that is read at the beginning and at the end, and two moments of what it is changed by.
Graph momentum_graph() {
  Graph graph("momentum");
  const Var x = input(graph, DType::f32, {kExtent}, "x");
  const Var weight = state(graph, draw_vector(1), "weight");
  const Var mean = state(graph, draw_vector(2), "mean");
  const Var square = state(graph, draw_vector(3), "square");
  const Var change = relu(add(weight, x));
  const Var next_mean = add(mean, change);
  const Var next_square = add(square, relu(next_mean));
  update(mean, next_mean);
  update(square, next_square);
  update(weight, add(weight, relu(next_square)));
  graph.add_output(change.id(), "y");
  return graph;
}

size_t count_of(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// All that a plan without a budget has on the device.
size_t bytes_of(const Executable& executable, size_t num_outputs, size_t num_states) {
  return executable.memory().arena_bytes + (num_outputs + num_states) * kStateBytes;
}

void expect_same_runs(const Executable& cold, const Executable& warm, const std::vector<std::string>& states) {
  for (uint64_t run = 0; run < 4; ++run) {
    const Tensor x = draw_vector(10 + run);
    const auto actual = cold.run({x});
    const auto expected = warm.run({x});
    for (size_t k = 0; k < expected.size(); ++k) {
      EXPECT_TRUE(actual[k].tensor().bitwise_equal(expected[k].tensor())) << "run " << run << ", output " << k;
    }
    for (const std::string& name : states) {
      EXPECT_TRUE(cold.states().get(name).bitwise_equal(warm.states().get(name))) << "run " << run << ", " << name;
    }
  }
}

TEST(ColdStates, WaitOnTheHostWhereTheBudgetIsSmall) {
  const Executable warm = compile(momentum_graph(), on_cold_toy());
  const size_t all = bytes_of(warm, 1, 3);
  EXPECT_EQ(compile(momentum_graph(), on_cold_toy(all)).print_plan().find("to device"), std::string::npos);
  // The moments in use for a step or two each go, the weight stays.
  const Executable cold = compile(momentum_graph(), on_cold_toy(all - kStateBytes));
  const std::string plan = cold.print_plan();
  EXPECT_EQ(count_of(plan, "copy [to device]"), 2U) << plan;
  EXPECT_EQ(count_of(plan, "copy [to host]"), 2U) << plan;
  EXPECT_EQ(plan.find("input1)"), std::string::npos) << plan;
  expect_same_runs(cold, compile(momentum_graph(), on_cold_toy()), {"weight", "mean", "square"});
}

TEST(ColdStates, TravelOnceARun) {
  const Executable warm = compile(momentum_graph(), on_cold_toy());
  const Executable cold = compile(momentum_graph(), on_cold_toy(bytes_of(warm, 1, 3) - kStateBytes));
  cold.run({draw_vector(1)});
  const size_t written = toy_memory().num_written();
  const size_t read = toy_memory().num_read();
  const size_t used = toy_memory().bytes_in_use();
  cold.run({draw_vector(2)});
  EXPECT_EQ(toy_memory().num_written() - written, 3 * kStateBytes) << "x and two states";
  EXPECT_EQ(toy_memory().num_read() - read, 3 * kStateBytes) << "y and two states";
  EXPECT_EQ(toy_memory().bytes_in_use(), used);
}

// Old values are read on one stream while the new ones, which do not depend on them, are made on another.
TEST(ColdStates, AreNotOverwrittenBeforeTheyAreRead) {
  Graph graph("replaced");
  const Var x = input(graph, DType::f32, {kExtent}, "x");
  Var sum = x;
  const std::vector<std::string> names{"a", "b", "c", "d"};
  for (uint64_t k = 0; k < names.size(); ++k) {
    const Var last = state(graph, draw_vector(k), names[k]);
    update(last, relu(add(sum, x)));
    sum = add(sum, relu(last));
  }
  graph.add_output(sum.id(), "sum");
  for (uint64_t seed = 0; seed < 6; ++seed) {
    Random random(seed);
    CompileOptions options = on_cold_toy();
    options.expert.schedule = std::make_shared<Schedule>(make_random_schedule(random, graph, 3, 1));
    options.memory_budget_bytes = bytes_of(compile(graph, options), 1, 4) - 1;
    const Executable cold = compile(graph, options);
    EXPECT_GE(count_of(cold.print_plan(), "copy [to "), 4U) << cold.print_plan();
    expect_same_runs(cold, compile(graph, on_cold_toy()), names);
  }
}

TEST(ColdStates, AreSharedWithExecutablesThatHaveRoom) {
  StateStore store;
  const auto with_store = [&](CompileOptions options) {
    options.states = store;
    return options;
  };
  const size_t all = bytes_of(compile(momentum_graph(), on_cold_toy()), 1, 3);
  const Executable cold = compile(momentum_graph(), with_store(on_cold_toy(all - kStateBytes)));
  const Executable warm = compile(momentum_graph(), with_store(on_cold_toy()));
  const Executable here = compile(momentum_graph(), with_store({}));
  Graph reading("read");
  reading.add_output(relu(state(reading, draw_vector(2), "mean")).id(), "y");
  const Executable reads = compile(reading, with_store(on_cold_toy()));
  const Executable alone = compile(momentum_graph());
  for (uint64_t run = 0; run < 9; ++run) {
    const Tensor x = draw_vector(20 + run);
    (run % 3 == 0 ? cold : run % 3 == 1 ? warm : here).run({x});
    alone.run({x});
    EXPECT_TRUE(store.get("mean").bitwise_equal(alone.states().get("mean"))) << run;
    EXPECT_TRUE(store.get("weight").bitwise_equal(alone.states().get("weight"))) << run;
    std::vector<double> expected = alone.states().get("mean").to_f64();
    for (double& value : expected) value = std::max(value, 0.0);
    EXPECT_EQ(reads.run(std::vector<Datum>())[0].tensor().to_f64(), expected) << run;
  }
}

TEST(ColdStates, MayOnlyBeRead) {
  Graph graph("read");
  Var y = input(graph, DType::f32, {kExtent}, "x");
  for (const char* name : {"first", "second"}) y = add(y, relu(state(graph, draw_vector(1), name)));
  graph.add_output(y.id(), "y");
  const Executable warm = compile(graph, on_cold_toy());
  const Executable cold = compile(graph, on_cold_toy(bytes_of(warm, 1, 2) - 1));
  EXPECT_EQ(count_of(cold.print_plan(), "copy [to device]"), 2U);
  EXPECT_EQ(count_of(cold.print_plan(), "copy [to host]"), 0U);
  expect_same_runs(cold, warm, {"first", "second"});
}

TEST(ColdStates, AreLookedAtForNanAndTimed) {
  CompileOptions options = on_cold_toy(bytes_of(compile(momentum_graph(), on_cold_toy()), 1, 3) - kStateBytes);
  options.check_nan = NanCheck::steps;
  options.profile = true;
  const Executable cold = compile(momentum_graph(), options);
  expect_same_runs(cold, compile(momentum_graph(), on_cold_toy()), {"mean", "weight"});
  const std::vector<StepProfile> steps = cold.profile();
  EXPECT_EQ(std::count_if(steps.begin(), steps.end(), [](const StepProfile& step) { return step.op == "copy"; }), 4);
}

// Two states that change places have no step that makes them, and nothing else can go.
TEST(ColdStates, AreRefusedWhereTheyCannotWait) {
  Graph graph("swap");
  const Var a = state(graph, draw_vector(1), "a");
  const Var b = state(graph, draw_vector(2), "b");
  update(a, b);
  update(b, a);
  graph.add_output(add(a, b).id(), "sum");
  const size_t all = bytes_of(compile(graph, on_cold_toy()), 1, 2);
  const std::string message = message_of<BudgetError>([&] { compile(graph, on_cold_toy(all - 1)); });
  EXPECT_NE(message.find("exceed the budget of"), std::string::npos) << message;
}

}  // namespace
}  // namespace autograph
