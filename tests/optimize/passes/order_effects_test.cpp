// Barriers hold nodes apart; nodes with effects keep their order whatever passes and schedules do.
#include <gtest/gtest.h>

#include <algorithm>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/devices.h"
#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/random.h"
#include "autograph/search.h"
#include "autograph/text.h"
#include "autograph/verify.h"
#include "engine/executable.h"
#include "optimize/pass.h"
#include "support/compare.h"
#include "support/graphs/random_schedule.h"
#include "support/record_op.h"

namespace autograph {
namespace {

size_t count_of(const Graph& graph, std::string_view op) {
  const std::vector<NodeId> nodes = graph.nodes();
  return static_cast<size_t>(
      std::count_if(nodes.begin(), nodes.end(), [&](NodeId id) { return graph.node(id).op().name == op; }));
}

TEST(Barrier, KeepsEqualNodesApart) {
  const auto prepared = [](bool with_barrier) {
    Graph graph;
    const Var x = input(graph, DType::f32, {8}, "x");
    const Var again = with_barrier ? barrier({x})[0] : x;
    graph.add_output(exp(x).id());
    graph.add_output(exp(again).id());
    PassContext context;
    run_passes(graph, context);
    return graph;
  };
  EXPECT_EQ(count_of(prepared(false), "exp"), 1U);
  EXPECT_EQ(count_of(prepared(true), "exp"), 2U);
  EXPECT_EQ(count_of(prepared(true), "barrier"), 1U);
}

TEST(Barrier, IsNotFusedAcross) {
  Graph graph;
  const Var x = input(graph, DType::f32, {8}, "x");
  graph.add_output(tanh(barrier({exp(mul(x, x))})[0]).id());
  const Graph prepared = prepare_graph(std::move(graph), get_device("cpu"), {});
  EXPECT_EQ(count_of(prepared, "barrier"), 1U) << print_text(prepared);
  EXPECT_EQ(count_of(prepared, "tanh"), 1U) << print_text(prepared);
}

TEST(Barrier, CostsNoStep) {
  Graph graph;
  const Var x = input(graph, DType::f32, {4}, "x");
  const Var a = exp(x);
  const std::vector<Var> behind = barrier({a, tanh(x)});
  graph.add_output(add(behind[0], x).id());
  CompileOptions options;
  options.expert.use_passes = false;
  const Executable executable = compile(graph, options);
  EXPECT_EQ(executable.print_plan().find("barrier"), std::string::npos) << executable.print_plan();
  const Tensor given = Tensor::of<float>({4}, {0, 1, 2, 3});
  std::vector<float> expected;
  for (const float v : {0.0F, 1.0F, 2.0F, 3.0F}) expected.push_back(std::exp(v) + v);
  EXPECT_EQ(difference(executable.run({given})[0], Tensor::of<float>({4}, expected)), "");
}

// Effects of both kinds on branches that do not depend on each other, with work of different lengths in front of them.
Graph make_effects(int count) {
  Graph graph("effects");
  const Var x = input(graph, DType::f32, {16}, "x");
  for (int tag = 0; tag < count; ++tag) {
    Var y = x;
    for (int i = 0; i < (count - tag) % 4; ++i) y = tanh(mul(y, y));
    const Var out = tag % 2 == 0 ? add_record(y, tag) : add_collective_record(y, tag);
    if (tag % 3 == 0) graph.add_output(exp(out).id());  // nobody reads the others
  }
  return graph;
}

std::vector<int64_t> tags(int count) {
  std::vector<int64_t> expected;
  for (int tag = 0; tag < count; ++tag) expected.push_back(tag);
  return expected;
}

// One run leaves `expected` in the record, with passes and without.
void expect_record(const Graph& graph, const std::vector<int64_t>& expected) {
  for (const bool use_passes : {false, true}) {
    CompileOptions options;
    options.expert.use_passes = use_passes;
    const Executable executable = compile(graph, options);
    take_record();
    executable.run({Tensor::zeros(DType::f32, {16})});
    EXPECT_EQ(take_record(), expected) << use_passes << "\n" << print_text(executable.graph());
  }
}

TEST(Effects, RunInTheirOrderThoughNobodyReadsThem) {
  constexpr int kCount = 7;
  expect_record(make_effects(kCount), tags(kCount));
}

TEST(Effects, KeepTheirOrderOnAllSchedules) {
  constexpr int kCount = 9;
  const Graph graph = prepare_graph(make_effects(kCount), get_device("cpu"), {});
  size_t with_streams = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    CompileOptions options;
    options.threads = 1 + static_cast<int>(seed % 4);
    options.expert.fixed_threads = true;
    options.expert.schedule = std::make_shared<const Schedule>(make_random_schedule(random, graph, 4, 2));
    const Executable executable = compile(graph, options);
    with_streams += executable.print_plan().find("streams of") != std::string::npos;
    for (int run = 0; run < 3; ++run) {
      take_record();
      executable.run({Tensor::zeros(DType::f32, {16})});
      ASSERT_EQ(take_record(), tags(kCount)) << "seed " << seed << "\n" << executable.print_plan();
    }
  }
  EXPECT_GT(with_streams, 30U);
}

// A body that records `tag`, but gives back something else.
Graph make_recording_branch(int64_t tag) {
  Graph graph("branch " + std::to_string(tag));
  const Var x = input(graph, DType::f32, {16}, "x");
  add_record(tanh(x), tag);
  graph.add_output(neg(x).id(), "y");
  return graph;
}

TEST(Effects, KeepTheirOrderInBranches) {
  Graph graph("branches");
  const Var x = input(graph, DType::f32, {16}, "x");
  for (int64_t tag = 0; tag < 6; ++tag) {
    if (tag % 2 == 0) {
      const Var condition = constant(graph, Tensor::scalar(tag % 4 == 0));
      const Graph wrong = make_recording_branch(-1);
      const Graph right = make_recording_branch(tag);
      if_else(condition, tag % 4 == 0 ? right : wrong, tag % 4 == 0 ? wrong : right, {x});
    } else {
      add_record(exp(x), tag);
    }
  }
  graph.add_output(relu(x).id(), "y");
  expect_record(graph, tags(6));
}

TEST(Effects, HappenInEveryTurnOfALoop) {
  Graph body("body");
  input(body, DType::i64, {}, "turn");
  const Var go_on = input(body, DType::boolean, {}, "go on");
  const Var sum = input(body, DType::f32, {16}, "sum");
  add_record(tanh(sum), 0);
  const Var next = add(sum, constant(body, Tensor::scalar(1.0F)));
  add_record(constant(body, Tensor::zeros(DType::f32, {16})), 1);  // the same in every turn
  body.add_output(go_on.id());
  body.add_output(next.id());
  Graph graph("loops");
  const Var x = input(graph, DType::f32, {16}, "x");
  loop(constant(graph, Tensor::scalar(int64_t{3})), {}, {x}, body);  // nobody reads what it gives
  add_record(x, 2);
  graph.add_output(relu(x).id(), "y");
  expect_record(graph, std::vector<int64_t>{0, 1, 0, 1, 0, 1, 2});
}

TEST(Effects, KeepTheirOrderInSearches) {
  constexpr int kCount = 7;
  for (const Strategy strategy : available_strategies()) {
    SearchOptions search;
    search.strategy = strategy;
    search.budget_seconds = 0.2;
    search.use_tuning = false;
    const Optimized optimized = autograph::optimize(make_effects(kCount), {}, search);
    const Executable executable = compile(optimized, {});
    take_record();
    executable.run({Tensor::zeros(DType::f32, {16})});
    EXPECT_EQ(take_record(), tags(kCount)) << to_string(strategy);
  }
}

TEST(Effects, AreOrderedOnce) {
  Graph graph = prepare_graph(make_effects(5), get_device("cpu"), {});
  EXPECT_EQ(count_of(graph, "barrier"), 4U);
  graph = prepare_graph(std::move(graph), get_device("cpu"), {});
  EXPECT_EQ(count_of(graph, "barrier"), 4U);
}

}  // namespace
}  // namespace autograph
