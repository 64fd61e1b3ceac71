#include "backends/sim/simulate.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "autograph/error.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/fused.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/recurrent.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "autograph/zoo.h"
#include "schedule/random_tasks.h"
#include "schedule/schedulers/greedy.h"
#include "schedule/schedulers/ios.h"
#include "schedule/schedulers/list.h"
#include "schedule/schedulers/nimble.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

// Numbers to compute with by hand: 10 processors that do 10 operations a microsecond each on blocks of 100 outputs, and
// memory that never matters.
SimMachine round_machine() {
  SimMachine machine;
  machine.name = "round";
  machine.sms = 10;
  machine.tflops = 1e-4;
  machine.gb_per_s = 1e6;
  machine.gb_per_s_part = 1;
  machine.graph_start_us = 1;
  machine.eager_start_us = 2;
  machine.eager_launch_us = 6;
  machine.sync_us = 0.5;
  machine.max_streams = 4;
  machine.block_outputs = 100;
  machine.block_bytes = 1e9;
  machine.blocks_per_sm = 1;
  machine.efficiency = {{"default", 1}};
  machine.copy_gb_per_s = 1e-3;
  machine.copy_start_us = 3;
  return machine;
}

// Two `neg` of one input, of `size` elements each.
Graph two_kernels(int64_t size) {
  Graph graph;
  const Var x = input(graph, DType::f32, Shape{size}, "x");
  graph.add_output(neg(x).id());
  graph.add_output(neg(x).id());
  return graph;
}

Schedule side_by_side(const Graph& graph) {
  Schedule schedule;
  schedule.stages.emplace_back();
  for (const NodeId id : graph.nodes()) schedule.stages[0].streams.push_back({id});
  return schedule;
}

TEST(Sim, RunsTwoKernelsOfHalfTheDeviceInTheTimeOfOne) {
  const Graph graph = two_kernels(500);  // 5 blocks on 10 processors, 10 operations a microsecond each: 10 us
  const SimKernel alone = sim_kernel(graph, graph.nodes()[0], round_machine());
  EXPECT_EQ(alone.sms_part, 0.5);
  EXPECT_EQ(alone.work_us, 10);
  const SimReport beside = simulate(graph, side_by_side(graph), round_machine());
  EXPECT_EQ(beside.latency_us, 11);
  EXPECT_EQ(beside.max_running, 2u);
  EXPECT_DOUBLE_EQ(beside.sms_busy_part, 10.0 / 11);
  EXPECT_EQ(simulate(graph, {}, round_machine()).latency_us, 22);
}

TEST(Sim, GainsNothingBesideAFullDeviceButTheStart) {
  const Graph graph = two_kernels(1000);
  EXPECT_EQ(simulate(graph, {}, round_machine()).latency_us, 22);
  EXPECT_EQ(simulate(graph, side_by_side(graph), round_machine()).latency_us, 21);
}

TEST(Sim, HasWholeWavesOfBlocks) {
  // 11 blocks on 10 processors take as long as 20.
  EXPECT_DOUBLE_EQ(sim_kernel(two_kernels(1100), NodeId{0}, round_machine()).work_us, 20);
  EXPECT_DOUBLE_EQ(sim_kernel(two_kernels(2000), NodeId{0}, round_machine()).work_us, 20);
}

TEST(Sim, IsBoundByMemoryWhereThatIsSlower) {
  SimMachine machine = round_machine();
  machine.gb_per_s = 0.1;  // 100 bytes a microsecond
  EXPECT_DOUBLE_EQ(sim_kernel(two_kernels(1000), NodeId{0}, machine).work_us, 80);
  EXPECT_DOUBLE_EQ(sim_kernel(two_kernels(1000), NodeId{0}, machine).bytes_part, 1);
  // A tenth of the processors reaches a fifth of the bandwidth when half of them saturate it.
  machine.gb_per_s_part = 0.5;
  EXPECT_DOUBLE_EQ(sim_kernel(two_kernels(100), NodeId{0}, machine).work_us, 8 / 0.2);
  EXPECT_DOUBLE_EQ(sim_kernel(two_kernels(100), NodeId{0}, machine).bytes_part, 0.2);
}

// 9 positions of 50 numbers, 100 hidden ones. Products with W: 90,000 operations on all 10 processors. A step: a ninth
// of 1,000 outputs, so that 20,000 operations are done on 10 / 9 of them, and a wait for the one before.
TEST(Sim, StepsOfARecurrentLayerFollowOneAnother) {
  Graph graph;
  const auto weight = [&](Dims dims) { return constant(graph, Tensor::zeros(DType::f32, std::move(dims))); };
  rnn(input(graph, DType::f32, {9, 1, 50}, "x"), weight({1, 100, 50}), weight({1, 100, 100}));
  const SimKernel kernel = sim_kernel(graph, graph.nodes()[0], round_machine());
  const double walk_us = 9 * 1800 + 8 * 0.5;
  EXPECT_DOUBLE_EQ(kernel.work_us, 900 + walk_us);
  EXPECT_DOUBLE_EQ(kernel.sms_part, (900 + walk_us / 9) / (900 + walk_us));
}

// A layer of zoo:bilstm, its directions in one kernel each and then together.
Graph lstm_layer(const std::vector<std::string>& directions) {
  Graph graph;
  const Var x = input(graph, DType::f32, {64, 1, 512}, "x");
  std::vector<Var> y;
  for (const std::string& direction : directions) {
    const int64_t count = direction == "bidirectional" ? 2 : 1;
    const auto weight = [&](int64_t depth) {
      return constant(graph, Tensor::zeros(DType::f32, {count, 4 * 256, depth}));
    };
    y.push_back(lstm(x, weight(512), weight(256), {}, direction)[0]);
  }
  graph.add_output((y.size() > 1 ? concat(y, 1) : y[0]).id());
  return graph;
}

// One kernel of both directions has the blocks of both: in two kernels there is no more to run side by side.
TEST(Sim, TwoDirectionsInOneKernelAreSideBySide) {
  for (const std::string& name : sim_machine_names()) {
    const SimMachine machine = load_sim_machine(name);
    const double both_us = simulate(lstm_layer({"bidirectional"}), {}, machine).latency_us;
    const Graph two = lstm_layer({"forward", "reverse"});
    const std::vector<NodeId> nodes = two.topological_order();
    Schedule schedule;
    schedule.stages = {{.streams = {{nodes[0]}, {nodes[1]}}}, {.streams = {{nodes[2]}}}};
    const double apart_us = simulate(two, schedule, machine).latency_us;
    EXPECT_LT(both_us, apart_us) << name;
    EXPECT_LT(apart_us, 1.1 * both_us) << name;
    EXPECT_GT(simulate(two, {}, machine).latency_us, 1.8 * both_us) << name;
  }
}

TEST(Sim, IsBoundByTheHostWithoutAGraph) {
  const TaskCase chain = make_case({{}, {0}, {1}, {2}});  // of one element: 0.1 us of work each
  const SimReport eager = simulate(chain.graph, {}, round_machine(), SimLaunch::eager);
  EXPECT_NEAR(eager.latency_us, 4 * 6 + 2 + 0.1, 1e-9);
  EXPECT_NEAR(simulate(chain.graph, {}, round_machine()).latency_us, 4 * (1 + 0.1), 1e-9);
}

TEST(Sim, TakesTheTimeOfAllCostsInSequence) {
  Random random(51);
  SimCost cost(round_machine());
  for (int i = 0; i < 200; ++i) {
    const Graph graph = random_case(random, draw_count(random, 1, 30)).graph;
    double sum = 0;
    for (const NodeId id : graph.nodes()) sum += cost.node_us(graph, id, 1);
    EXPECT_NEAR(simulate(graph, {}, round_machine()).latency_us, sum, 1e-9);
  }
}

// Everything starts after what it reads, with the wait where that ran in another stream; stages do not overlap.
void expect_legal(const Graph& graph, const SimReport& report, double sync_us) {
  std::vector<SimEvent> event_of(graph.node_capacity());
  for (const SimEvent& event : report.events) event_of[event.node.index] = event;
  ASSERT_EQ(report.events.size(), graph.num_nodes());
  for (const SimEvent& event : report.events) {
    EXPECT_GE(event.end_us, event.start_us + event.alone_us - 1e-9);
    EXPECT_LE(event.end_us, report.latency_us);
    for (const ValueId v : graph.node(event.node).inputs()) {
      const NodeId producer = graph.value(v).producer();
      if (!producer.is_valid()) continue;
      const SimEvent& source = event_of[producer.index];
      EXPECT_GE(event.start_us, source.end_us + (source.stream == event.stream ? 0 : sync_us) - 1e-9);
    }
  }
  for (const SimEvent& a : report.events) {
    for (const SimEvent& b : report.events) {
      EXPECT_TRUE(a.stage >= b.stage || a.end_us <= b.start_us);
    }
  }
}

// The tasks of a graph, with their costs and loads.
TaskGraph tasks_on(const Graph& graph, const SimMachine& machine) {
  SimCost cost(machine);
  return make_task_graph(graph, [&](const Graph& g, NodeId node) {
    const double us = cost.node_us(g, node, 1);
    return Task{node, us, us, *cost.node_load(g, node)};
  });
}

TEST(Sim, KeepsTheOrderThatSchedulesAskFor) {
  Random random(52);
  const SimMachine machine = round_machine();
  for (int i = 0; i < 150; ++i) {
    const Graph graph = random_case(random, draw_count(random, 1, 30)).graph;
    const TaskGraph tasks = tasks_on(graph, machine);
    const StreamLimits limits{machine.max_streams, machine.sync_us};
    for (const Schedule& schedule :
         {schedule_greedy(tasks, limits), schedule_nimble(tasks, limits), schedule_list(tasks, limits)}) {
      const SimReport report = simulate(graph, schedule, machine);
      expect_legal(graph, report, machine.sync_us);
      EXPECT_GE(report.latency_us, upward_ranks(tasks)[0] - 1e-9);
    }
    // One block each: four streams never ask for more than the device has, so the estimate of list scheduling holds.
    const SimReport listed = simulate(graph, schedule_list(tasks, limits), machine);
    EXPECT_LE(listed.latency_us, sequential_us(tasks) + 1e-9);
  }
}

// What schedulers estimate of a stage is what the clock of the machine says.
TEST(SimLoads, TellWhatAStageTakesByItself) {
  Random random(53);
  SimMachine machine = round_machine();
  machine.sms = 2;  // kernels of one block each slow each other down
  for (int i = 0; i < 200; ++i) {
    const Graph graph = random_case(random, draw_count(random, 1, 25)).graph;
    const TaskGraph tasks = tasks_on(graph, machine);
    const StreamLimits limits{3, machine.sync_us};
    const TaskStreams streams = assign_streams(tasks, limits).folded;
    Schedule schedule;
    schedule.stages.emplace_back();
    for (const auto& stream : streams) {
      schedule.stages[0].streams.emplace_back();
      for (const TaskIndex task : stream) schedule.stages[0].streams.back().push_back(tasks.tasks[task].node);
    }
    const double expected = simulate(graph, schedule, machine).latency_us;
    EXPECT_NEAR(estimate_stage_us(tasks, streams, limits), expected + (streams.size() > 1 ? machine.sync_us : 0), 1e-9);
  }
}

// Where kernels slow each other down, stages chosen by loads beat those chosen by what tasks take alone.
TEST(SimLoads, MakeSchedulesThatAreFasterWhereKernelsCompete) {
  Random random(54);
  SimMachine machine = round_machine();
  machine.sms = 1;
  machine.sync_us = 1.5;
  double ios[2] = {0, 0};
  double list[2] = {0, 0};
  for (int i = 0; i < 40; ++i) {
    const Graph graph = random_case(random, draw_count(random, 5, 25)).graph;
    const TaskGraph with_loads = tasks_on(graph, machine);
    TaskGraph alone = with_loads;
    for (Task& task : alone.tasks) task.load = {};
    const StreamLimits limits{4, machine.sync_us};
    const TaskGraph* graphs[] = {&alone, &with_loads};
    for (int k = 0; k < 2; ++k) {
      ios[k] += simulate(graph, schedule_ios(*graphs[k], limits, {}).schedule, machine).latency_us;
      list[k] += simulate(graph, schedule_list(*graphs[k], limits), machine).latency_us;
    }
  }
  EXPECT_LE(ios[1], ios[0]);
  EXPECT_LT(list[1], list[0]);
}

TEST(Sim, TracesAForkAndJoin) {
  const TaskCase c = make_case({{}, {0}, {0}, {1, 2}});
  Schedule schedule;
  schedule.stages.push_back({0, {{NodeId{0}, NodeId{1}, NodeId{3}}, {NodeId{2}}}});
  const SimReport report = simulate(c.graph, schedule, round_machine());
  EXPECT_EQ(to_string(report, c.graph),
            "0.000 1.100 0.0 neg #0\n"
            "1.100 2.200 0.0 sum #1\n"
            "1.600 2.700 0.1 sum #2\n"
            "3.200 4.300 0.0 sum #3\n");
  EXPECT_EQ(report.num_waits, 2u);
}

TEST(Sim, WaitsForAllStreamsOfAStage) {
  const TaskCase c = make_case({{}, {}, {0}, {0}});
  Schedule schedule;
  schedule.stages.push_back({0, {{NodeId{0}}, {NodeId{1}}}});
  schedule.stages.push_back({0, {{NodeId{2}, NodeId{3}}}});
  const SimReport report = simulate(c.graph, schedule, round_machine());
  EXPECT_EQ(to_string(report, c.graph),
            "0.000 1.100 0.0 neg #0\n"
            "0.000 1.100 0.1 neg #1\n"
            "1.600 2.700 1.0 sum #2\n"
            "2.700 3.800 1.0 sum #3\n");
}

TEST(Sim, RefusesSchedulesThatDoNotFitTheGraph) {
  const TaskCase c = make_case({{}, {0}});
  Schedule schedule;
  schedule.stages.push_back({0, {{NodeId{1}}, {NodeId{0}}}});
  schedule.stages.push_back({0, {{NodeId{0}}}});
  EXPECT_THROW(simulate(c.graph, schedule, round_machine()), InternalError);
}

TEST(Sim, TakesNoTimeForViewsAndWeightsAlone) {
  Graph graph;
  const Var x = input(graph, DType::f32, Shape{2, 3}, "x");
  const Var w = constant(graph, Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6}), "w");
  const Var flat = reshape(neg(x), {6});
  graph.add_output(add(flat, reshape(transpose(w, {1, 0}), {6})).id());
  const SimReport report = simulate(graph, {}, round_machine());
  EXPECT_EQ(report.events.size(), graph.num_nodes());
  EXPECT_EQ(to_string(report, graph), "0.000 1.600 0.0 neg #0\n1.600 3.200 0.0 add #4\n");
  EXPECT_EQ(report.input_copy_us, 3 + 24);
  EXPECT_EQ(report.output_copy_us, 3 + 24);
}

TEST(Sim, TakesTimeForMovingData) {
  Graph graph;
  const Var x = input(graph, DType::f32, Shape{64, 64}, "x");
  const std::vector<Var> moved = {transpose(x, {1, 0}), concat({x, x}, 0), split_evenly(x, 2)[1],
                                  slice(x, {0}, {32}, {0}), pad(x, {1, 1, 1, 1})};
  SimCost cost(load_sim_machine("v100"));
  for (const Var& var : moved) {
    EXPECT_GT(cost.node_us(graph, graph.value(var.id()).producer(), 1), cost.machine().graph_start_us);
  }
}

TEST(Sim, TakesLessForFusedNodesThanForTheirParts) {
  auto body = std::make_shared<Graph>("body");
  const auto chain = [](Var x, Var w) { return sigmoid(add(relu(conv(x, w)), scalar_like(x, 1))); };
  const Shape x_shape{1, 32, 58, 58};
  const Shape w_shape{32, 32, 3, 3};
  const Var body_x = input(*body, DType::f32, x_shape, "x");
  body->add_output(chain(body_x, input(*body, DType::f32, w_shape, "w")).id());
  Graph graph;
  const Var x = input(graph, DType::f32, x_shape, "x");
  const Var w = input(graph, DType::f32, w_shape, "w");
  const Var whole = fused({x, w}, GraphRef(body))[0];
  const Var parts = chain(x, w);
  SimCost cost(load_sim_machine("v100"));
  const auto us = [&](Var var) { return cost.node_us(graph, graph.value(var.id()).producer(), 1); };
  double sum = 0;
  for (const NodeId id : graph.nodes()) sum += cost.node_us(graph, id, 1);
  EXPECT_LT(us(whole), sum - us(whole));
  // The work of the convolution, whose efficiency it has, and a little more.
  EXPECT_GT(us(whole), us(conv(x, w)));
  EXPECT_LT(us(whole), us(conv(x, w)) * 1.2);
  static_cast<void>(parts);
}

TEST(Sim, TakesLongerForThinSums) {
  // A depthwise convolution has a 64th of the work and takes much more than a 64th of the time.
  Graph graph;
  const Var x = input(graph, DType::f32, Shape{1, 256, 58, 58}, "x");
  const Var dense = conv(x, input(graph, DType::f32, Shape{256, 256, 3, 3}, "w"));
  const Var thin = conv(x, input(graph, DType::f32, Shape{256, 1, 3, 3}, "v"), {}, {.group = 256});
  const SimMachine machine = load_sim_machine("v100");
  const auto work = [&](Var var) { return sim_kernel(graph, graph.value(var.id()).producer(), machine).work_us; };
  EXPECT_GT(work(thin), work(dense) / 64);
  EXPECT_LT(work(thin), work(dense) / 4);
}

// A cell of NasNet on a GPU of the time of the paper: launches cost more than a captured graph, one stream more than
// wavefronts, and choosing streams by what they save costs least.
TEST(Sim, RanksStrategiesAsDevicesDo) {
  const SimMachine machine = load_sim_machine("v100");
  const Graph graph = build_zoo_model("nasnet_cell");
  const TaskGraph tasks = tasks_on(graph, machine);
  const StreamLimits limits{machine.max_streams, machine.sync_us};
  const auto us = [&](const Schedule& schedule) { return simulate(graph, schedule, machine).latency_us; };
  const double eager = simulate(graph, {}, machine, SimLaunch::eager).latency_us;
  EXPECT_GT(eager, us({}));
  EXPECT_GT(us({}), us(schedule_greedy(tasks, limits)) * 1.2);
  EXPECT_GE(us(schedule_greedy(tasks, limits)), us(schedule_ios(tasks, limits).schedule) * 0.999);
  EXPECT_GT(us({}), us(schedule_nimble(tasks, limits)) * 1.2);
  EXPECT_GT(us(schedule_greedy(tasks, limits)), us(schedule_list(tasks, limits)));
}

// ---- Machines --------------------------------------------------------------------------------------------------

TEST(SimMachines, AreThereByName) {
  EXPECT_EQ(sim_machine_names(), (std::vector<std::string>{"h200", "v100"}));
  for (const std::string& name : sim_machine_names()) {
    const SimMachine machine = load_sim_machine(name);
    EXPECT_EQ(machine.name, name);
    EXPECT_FALSE(machine.description.empty());
  }
  EXPECT_GT(load_sim_machine("h200").tflops, load_sim_machine("v100").tflops);
}

std::string message_of(const std::string& text) {
  try {
    parse_sim_machine(text, "here");
  } catch (const FormatError& error) {
    return error.what();
  }
  return "no error";
}

TEST(SimMachines, TellWhatIsWrong) {
  try {
    load_sim_machine("v10");
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(),
                 "[sim] device 'v10': expected h200, v100 or the path of a .json file (did you mean 'v100'?)");
  }
  EXPECT_THROW(load_sim_machine("/does/not/exist.json"), IoError);
  EXPECT_EQ(message_of("{"), "[sim] here: expected a JSON object, got no JSON");
  EXPECT_EQ(message_of("[1]"), "[sim] here: expected a JSON object, got array");
  EXPECT_EQ(message_of("{\"name\": 3}"), "[sim] here: 'name': expected a text, got 3");
  EXPECT_EQ(message_of("{\"name\": \"a\"}"), "[sim] here: 'description': expected a value, got none");
}

TEST(SimMachines, AreReadFromFiles) {
  const std::string good = R"({"name": "n", "description": "d", "sms": 4, "tflops": 1, "gb_per_s": 10,
    "gb_per_s_part": 0.5, "graph_start_us": 1, "eager_start_us": 1, "eager_launch_us": 1, "sync_us": 0,
    "max_streams": 2, "block_outputs": 64, "block_bytes": 64, "blocks_per_sm": 1, "inner_half": 0,
    "efficiency": {"conv": 0.5, "default": 1}, "copy_gb_per_s": 1, "copy_start_us": 1})";
  const TestFolder folder;
  const SimMachine machine = load_sim_machine(folder.write("machine.json", good));
  EXPECT_EQ(machine.sms, 4);
  EXPECT_EQ(machine.efficiency_of(get_op("conv")), 0.5);
  EXPECT_EQ(machine.efficiency_of(get_op("relu")), 1);

  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return message_of(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_EQ(changed("\"sms\": 4", "\"sms\": 4.5"), "[sim] here: 'sms': expected a whole number up to 1000000, got 4.5");
  EXPECT_EQ(changed("\"sms\": 4", "\"sms\": 0"), "[sim] here: 'sms': expected at least 1, got 0");
  EXPECT_EQ(changed("\"sms\": 4", "\"sms\": true"), "[sim] here: 'sms': expected a number, got true");
  EXPECT_EQ(changed("\"tflops\": 1", "\"tflops\": 0"), "[sim] here: 'tflops': expected more than 0, got 0");
  EXPECT_EQ(changed("0.5, \"graph", "1.5, \"graph"), "[sim] here: 'gb_per_s_part': expected at most 1, got 1.5");
  EXPECT_EQ(changed("\"conv\": 0.5, \"default\"", "\"conv\""),
            "[sim] here: 'efficiency': expected an object with 'default', got {\"conv\":1}");
  EXPECT_EQ(changed("\"name\"", "\"sync\": 1, \"name\""), "[sim] here: 'sync': unknown field");
}

}  // namespace
}  // namespace autograph
