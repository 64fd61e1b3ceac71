// Running by a schedule: the numbers are those of a run without one, whatever the streams; errors end every stream;
// runs at the same time do not meet.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <thread>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/devices.h"
#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/random.h"
#include "autograph/text.h"
#include "autograph/verify.h"
#include "engine/built_in_devices.h"
#include "engine/executable.h"
#include "ops/sample.h"
#include "runtime/run_context.h"
#include "support/compare.h"
#include "support/graphs/random_graph.h"
#include "support/graphs/random_network.h"
#include "support/graphs/random_schedule.h"
#include "support/host_devices.h"

namespace autograph {
namespace {

// AG_RANDOM_GRAPHS and AG_RANDOM_SEED as for the random graphs.
uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

CompileOptions by(Schedule schedule, int threads, const std::string& device = "cpu") {
  CompileOptions options;
  options.device = device;
  options.threads = threads;
  options.expert.schedule = std::make_shared<const Schedule>(std::move(schedule));
  return options;
}

CompileOptions in_turn(const std::string& device = "cpu") {
  CompileOptions options;
  options.device = device;
  options.threads = 1;
  options.expert.use_passes = false;
  return options;
}

NodeId made_by(Var v) { return v.graph().value(v.id()).producer(); }

std::vector<NodeId> nodes_of(const std::vector<Var>& vars) {
  std::vector<NodeId> nodes;
  for (const Var& v : vars) nodes.push_back(made_by(v));
  return nodes;
}

// With one thread for every step the kernels are the same, so the numbers must be, too.
TEST(Streams, RandomGraphsGiveTheSameNumbersAsInTurn) {
  const uint64_t first = from_environment("AG_RANDOM_SEED", 1);
  const uint64_t count = from_environment("AG_RANDOM_GRAPHS", 300);
  size_t with_streams = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Random random(seed);
    const TestGraph test = make_random_graph(random, 4 + static_cast<int>(seed % 16));
    SCOPED_TRACE("seed " + std::to_string(seed));
    for (const std::string& device : host_devices()) {
      Graph graph;
      std::vector<Datum> expected;
      try {
        graph = prepare_graph(test.graph, get_device(device), {});
        expected = compile(graph, in_turn(device)).run(test.inputs);
      } catch (const UserError&) {
        continue;  // a drawn value is no legal index; the tests of random graphs see to those
      }
      const Schedule schedule = make_random_schedule(random, graph, 4, 4);
      const Executable executable = compile(graph, by(schedule, 1, device));
      with_streams += executable.print_plan().find("streams of") != std::string::npos;
      ASSERT_EQ(difference(executable.run(test.inputs), expected, {0, 0}), "") << print_text(graph);
      ASSERT_EQ(difference(executable.run(test.inputs), expected, {0, 0}), "") << "second run";
    }
  }
  EXPECT_GT(with_streams, count / 4);
}

TEST(Streams, RandomNetworksMatchTheReference) {
  const uint64_t first = from_environment("AG_RANDOM_SEED", 0);
  const uint64_t count = from_environment("AG_RANDOM_GRAPHS", 60);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Graph source = make_random_network(seed);
    Random random(seed);
    const Tensor x = draw_tensor(random, DType::f32, source.type(source.inputs()[0]).shape().static_dims());
    const std::vector<Datum> expected = compile(source, in_turn("reference")).run({x});
    const Graph graph = prepare_graph(source, get_device("cpu"), {});
    for (int variant = 0; variant < 4; ++variant) {
      const Schedule schedule = make_random_schedule(random, graph, 4, 4);
      const Executable executable = compile(graph, by(schedule, 1 + variant));
      for (int round = 0; round < 2; ++round) {
        ASSERT_EQ(difference(executable.run({x}), expected, {2e-3, 2e-3}), "")
            << "seed " << seed << ", variant " << variant << "\n"
            << to_string(schedule, graph) << executable.print_plan();
      }
    }
  }
}

// x -> a -> b -> c, and picked -> d, and y from both; `picked` fails where `indices` has more than 7.
struct Fallible {
  Graph graph{"fallible"};
  Var x = input(graph, DType::f32, {8, 512}, "x");
  Var indices = input(graph, DType::i64, {8}, "indices");
  Var a = exp(x);
  Var b = neg(a);
  Var c = abs(b);
  Var picked = gather(x, indices);
  Var d = relu(picked);
  Var y = add(c, d);
  Var z = add(d, b);

  Fallible() {
    graph.add_output(y.id(), "y");
    graph.add_output(z.id(), "z");
  }
  Schedule schedule(int threads) const {
    return {{{threads, {nodes_of({a, b, c, y}), nodes_of({picked, d}), nodes_of({z})}}}};
  }
  static std::vector<Datum> inputs(int64_t index) {
    Tensor indices = Tensor::zeros(DType::i64, {8});
    indices.mutable_data<int64_t>()[5] = index;
    return {Tensor::zeros(DType::f32, {8, 512}), indices};
  }
};

TEST(Streams, AnErrorInOneStreamEndsTheRunAndNamesItsStep) {
  const Fallible fallible;
  for (const int threads : {1, 2}) {
    for (const std::string& device : built_in_devices()) {
      SCOPED_TRACE(device + " " + std::to_string(threads));
      const Executable executable = compile(fallible.graph, by(fallible.schedule(threads), 2, device));
      ASSERT_NE(executable.print_plan().find("waits"), std::string::npos);
      for (int round = 0; round < 50; ++round) {
        try {
          executable.run(Fallible::inputs(99));
          FAIL() << "index 99 was taken";
        } catch (const UserError& error) {
          EXPECT_NE(std::string(error.what()).find(" gather: f32[8,512]"), std::string::npos) << error.what();
        }
        EXPECT_EQ(executable.run(Fallible::inputs(3))[0].tensor().to_f64(), std::vector<double>(8 * 512, 1));
      }
    }
  }
}

TEST(Streams, OfSeveralErrorsTheOneOfTheFirstStepCounts) {
  Graph graph;
  const Var x = input(graph, DType::f32, {8, 4}, "x");
  const Var indices = input(graph, DType::i64, {8}, "indices");
  std::vector<std::vector<NodeId>> streams;
  for (int i = 0; i < 4; ++i) {
    const Var y = gather(x, indices);
    streams.push_back(nodes_of({y}));
    graph.add_output(y.id(), "y" + std::to_string(i));
  }
  Tensor wrong = Tensor::zeros(DType::i64, {8});
  wrong.mutable_data<int64_t>()[0] = -77;
  const Executable executable = compile(graph, by({{{1, streams}}}, 4));
  for (int round = 0; round < 50; ++round) {
    EXPECT_THROW(executable.run({Tensor::zeros(DType::f32, {8, 4}), wrong}), UserError);
  }
}

TEST(Streams, RunsOfOneExecutableDoNotMeet) {
  const Fallible fallible;
  for (const int threads : {1, 2}) {
    const Executable executable = compile(fallible.graph, by(fallible.schedule(threads), 2));
    std::vector<std::thread> callers;
    for (int t = 0; t < 6; ++t) {
      callers.emplace_back([&, t] {
        for (int round = 0; round < 20; ++round) {
          if ((t + round) % 3 == 0) {
            EXPECT_THROW(executable.run(Fallible::inputs(99)), UserError);
            continue;
          }
          std::vector<Datum> inputs = Fallible::inputs(3);
          inputs[0] = Tensor::of<float>({8, 512}, std::vector<float>(8 * 512, static_cast<float>(t)));
          const double expected = std::exp(static_cast<float>(t)) + t;
          for (const double y : executable.run(inputs)[0].tensor().to_f64()) ASSERT_NEAR(y, expected, 1e-3);
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
  }
}

TEST(Streams, ProfilesTellStreamsAndTimesSinceTheStartOfTheRun) {
  const Fallible fallible;
  CompileOptions options = by(fallible.schedule(1), 3);
  options.profile = true;
  const Executable executable = compile(fallible.graph, options);
  for (int round = 0; round < 3; ++round) executable.run(Fallible::inputs(1));
  const std::vector<StepProfile> steps = executable.profile();
  ASSERT_EQ(steps.size(), 7U);
  double end_of_d = 0;
  double start_of_y = 0;
  for (const StepProfile& step : steps) {
    EXPECT_GE(step.start_us, 0);
    EXPECT_LT(step.start_us, 60e6);
    const bool is_second = step.op == "gather" || step.op == "relu";
    if (step.op != "add") {
      EXPECT_EQ(step.stream, is_second ? 1 : 0) << step.op;
    }
    if (step.op == "relu") end_of_d = step.start_us + step.duration_us;
    if (step.op == "add" && step.stream == 0) start_of_y = step.start_us;
  }
  EXPECT_GE(start_of_y, end_of_d);
}

TEST(Streams, CheckNanFindsTheFirstNodeInEveryRun) {
  const Fallible fallible;
  CompileOptions options = by(fallible.schedule(1), 2);
  options.check_nan = NanCheck::nodes;
  const Executable executable = compile(fallible.graph, options);
  EXPECT_EQ(executable.run(Fallible::inputs(0))[0].tensor().to_f64().front(), 1);
  std::vector<Datum> inputs = Fallible::inputs(0);
  inputs[0] = Tensor::of<float>({8, 512}, std::vector<float>(8 * 512, 1000));
  for (int round = 0; round < 5; ++round) {
    try {
      executable.run(inputs);
      FAIL() << "exp(1000) was taken for finite";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(" exp: f32[8,512]"), std::string::npos) << error.what();
    }
  }
}

TEST(Streams, WhereThreadsCannotBeHadTheyRunInTurn) {
  const Fallible fallible;
  const Device& device = get_device("cpu");
  Graph graph = fallible.graph;
  const KnownValues known = infer_types(graph);
  const Schedule schedule = fallible.schedule(1);
  PlanOptions plan_options{.catalog = device.catalog(), .threads = 2, .host_threads = device.host_threads()};
  plan_options.schedule = &schedule;
  RunContext context(compile_plan(std::make_shared<const Graph>(std::move(graph)), known, plan_options));
  ASSERT_FALSE(context.compiled().plan.stages.empty());
  const std::vector<Datum> inputs = Fallible::inputs(2);
  for (size_t i = 0; i < inputs.size(); ++i) context.bind_input(i, inputs[i]);
  for (const HostThreads* threads : {&HostThreads::none(), &device.host_threads()}) {
    Tensor y = Tensor::zeros(DType::f32, {8, 512});
    Tensor z = Tensor::zeros(DType::f32, {8, 512});
    context.bind_output(0, y);
    context.bind_output(1, z);
    const RunOptions options{.catalog = device.catalog(), .threads = 2, .host_threads = *threads};
    context.launch(options, nullptr);
    EXPECT_EQ(y.to_f64(), std::vector<double>(8 * 512, 1));
    EXPECT_EQ(z.to_f64(), std::vector<double>(8 * 512, -1));
  }
}

TEST(Streams, ScheduleIsThatOfTheExecutable) {
  const Fallible fallible;
  EXPECT_EQ(compile(fallible.graph, by(fallible.schedule(1), 2)).schedule().width(), 3);
  EXPECT_TRUE(compile(fallible.graph, in_turn()).schedule().is_sequential());
}

TEST(Streams, ASchedulesMistakesAreTheUsers) {
  const Fallible f;
  const auto message = [&](Schedule schedule) -> std::string {
    try {
      compile(f.graph, by(std::move(schedule), 2));
    } catch (const ValueError& error) {
      return error.what();
    }
    return "";
  };
  Schedule lacking = f.schedule(1);
  lacking.stages[0].streams.pop_back();
  EXPECT_NE(message(lacking).find("is in no stage"), std::string::npos);
  Schedule twice = f.schedule(1);
  twice.stages[0].streams[0].push_back(made_by(f.d));
  EXPECT_NE(message(twice).find("twice"), std::string::npos);
  Schedule turned = f.schedule(1);
  std::swap(turned.stages[0].streams[0][0], turned.stages[0].streams[0][1]);
  EXPECT_NE(message(turned).find("never comes"), std::string::npos);
  Schedule unknown = f.schedule(1);
  unknown.stages[0].streams[0].push_back(NodeId{12345});
  EXPECT_NE(message(unknown).find("lacks"), std::string::npos);
  EXPECT_NE(message({{{-1, f.schedule(1).stages[0].streams}}}).find("threads"), std::string::npos);
}

// A schedule is one for shapes that are known.
TEST(Streams, SymbolicShapesAreSequential) {
  Graph symbolic;
  const Var x = input(symbolic, DType::f32, {Dim::symbol("n")}, "x");
  const Var a = relu(x);
  const Var b = neg(x);
  symbolic.add_output(a.id(), "a");
  symbolic.add_output(b.id(), "b");
  const Executable executable = compile(symbolic, by({{{1, {nodes_of({a}), nodes_of({b})}}}}, 2));
  EXPECT_EQ(executable.run({Tensor::of<float>({2}, {-1, 3})})[0].tensor().to_f64(), (std::vector<double>{0, 3}));
  EXPECT_TRUE(executable.schedule().is_sequential());
  EXPECT_EQ(executable.print_plan().find("streams of"), std::string::npos);
}

// Streams go on before and behind a step whose shape the elements tell.
TEST(Streams, DynamicStepsAreStagesBetweenStreams) {
  Graph graph;
  const Var x = input(graph, DType::f32, {1000}, "x");
  const Var a = relu(x), b = neg(x);
  const Var c = exp(a), d = abs(b);
  const Var positions = non_zero(a);
  const Var e = tanh(c), f = sqrt(d), g = add(e, f);
  graph.add_output(positions.id(), "positions");
  graph.add_output(g.id(), "g");
  const Executable plain = compile(graph, by({}, 2));
  const Executable streams = compile(graph, by({{{1, {nodes_of({a, c, positions, e, g}), nodes_of({b, d, f})}}}}, 2));
  const std::string plan = streams.print_plan();
  EXPECT_NE(plan.find("streams of"), plan.rfind("streams of")) << plan;
  for (int run = 0; run < 50; ++run) {
    Tensor value = Tensor::zeros(DType::f32, {1000});
    for (int64_t k = 0; k < 1000; ++k) value.mutable_data<float>()[k] = static_cast<float>((k * 7 + run) % 11 - 5);
    EXPECT_EQ(difference(streams.run({value}), plain.run({value})), "");
  }
}

}  // namespace
}  // namespace autograph
