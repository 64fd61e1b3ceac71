// simplify_loops, count_turns, fuse_scanned_cell, simplify_branches: what leaves a body, and what must stay.
#include <gtest/gtest.h>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

// A loop over a state [2, 3] that is put together by a test.
struct LoopCase {
  Graph graph;
  std::shared_ptr<Graph> body = std::make_shared<Graph>("body");
  Var turn = input(*body, DType::i64, {}, "turn");
  Var condition = input(*body, DType::boolean, {}, "condition");
  std::vector<Var> inputs;
  int64_t num_captures = 0;

  explicit LoopCase(Var limit_of(Graph&)) { inputs = {limit_of(graph), Var()}; }

  Var outer(Shape shape, const std::string& name) { return input(graph, DType::f32, std::move(shape), name); }
  Var inner(Var outside, const std::string& name, bool is_captured = false) {
    inputs.push_back(outside);
    num_captures += static_cast<int64_t>(is_captured);
    const Type type = graph.type(outside.id());
    return input(*body, type.dtype(), type.shape(), name);
  }
  void finish(const std::vector<Var>& outputs) {
    for (const Var& v : outputs) body->add_output(v.id());
    const Attributes attributes{{"body", GraphRef(body)}, {"num_captures", num_captures}};
    for (const Var& v : apply_all(get_op("loop"), inputs, attributes, static_cast<int>(outputs.size()) - 1)) {
      graph.add_output(v.id());
    }
  }
};

Var four_turns(Graph& graph) { return constant(graph, Tensor::scalar(int64_t{4})); }

const Node& loop_of(const Graph& graph, const std::string& op = "loop") {
  for (const NodeId id : graph.nodes()) {
    if (graph.node(id).op().name == op) return graph.node(id);
  }
  ADD_FAILURE() << ops_of(graph);
  return graph.node(graph.nodes().front());
}

std::string body_ops(const Graph& graph, const std::string& op = "loop") {
  return ops_of(*loop_of(graph, op).attributes().get<GraphRef>("body"));
}

TEST(SimplifyLoops, WhatIsTheSameInEveryTurnLeaves) {
  LoopCase c(four_turns);
  Random random(1);
  const Var state = c.inner(c.outer({2, 3}, "x"), "state");
  const Var handed_on = c.inner(c.outer({2, 3}, "y"), "handed_on");
  const Var weight = c.inner(constant(c.graph, draw_tensor(random, DType::f32, {3, 3})), "weight", true);
  const Var captured = c.inner(c.outer({3, 3}, "z"), "captured", true);
  const Var next = add(matmul(tanh(matmul(state, weight)), sigmoid(captured)), handed_on);
  c.finish({c.condition, next, handed_on});
  const Graph after = after_pass(simplify_loops, c.graph);
  EXPECT_EQ(body_ops(after), "matmul tanh matmul add");
  const Node& loop = loop_of(after);
  EXPECT_EQ(loop.outputs().size(), 1u);
  // The limit, no condition, one state, and what is captured: the state handed on and sigmoid(captured).
  EXPECT_EQ(loop.inputs().size(), 5u);
  EXPECT_NE(ops_of(after).find("sigmoid"), std::string::npos);
}

// As exporters of paddle write an assignment.
TEST(SimplifyLoops, StatesToWhichZeroIsAddedLeave) {
  LoopCase c(four_turns);
  const Var state = c.inner(c.outer({2, 3}, "x"), "state");
  const Var handed_on = c.inner(c.outer({2, 3}, "y"), "handed_on");
  c.body->set_type(handed_on.id(), Type(DType::f32, Shape::unknown()));
  const Var assigned = squeeze(add(unsqueeze(handed_on, {0}), constant(*c.body, Tensor::of<float>({1}, {0}))), {0});
  c.finish({c.condition, add(state, tanh(handed_on)), assigned});
  const Graph after = after_pass(simplify_loops, c.graph);
  EXPECT_EQ(body_ops(after), "add");
  EXPECT_EQ(loop_of(after).outputs().size(), 1u);
}

TEST(SimplifyLoops, StatesThatNobodyNeedsGo) {
  LoopCase c(four_turns);
  const Var state = c.inner(c.outer({2, 3}, "x"), "state");
  const Var unneeded = c.inner(c.outer({2, 3}, "y"), "unneeded");
  for (const Var& v : {c.condition, tanh(state), exp(unneeded)}) c.body->add_output(v.id());
  c.graph.add_output(apply_all(get_op("loop"), c.inputs, {{"body", GraphRef(c.body)}}, 2)[0].id());
  EXPECT_EQ(body_ops(after_pass(simplify_loops, c.graph)), "tanh");
}

// Where there is no turn, an index out of range is never looked at.
TEST(SimplifyLoops, PositionsAreTakenInside) {
  LoopCase c([](Graph& graph) { return constant(graph, Tensor::scalar(int64_t{0})); });
  const Var state = c.inner(c.outer({2, 3}, "x"), "state");
  const Var table = c.inner(c.outer({5, 3}, "table"), "table", true);
  const Var far = c.inner(constant(c.graph, Tensor::vector({0})), "far", true);
  const Var index = add(far, constant(*c.body, Tensor::vector({70})));
  c.finish({c.condition, add(state, gather(table, index, 0))});
  Graph after = after_pass(simplify_loops, c.graph);
  // By now the index is a constant of the body.
  PassContext context = willing_device();
  simplify_loops(after, context);
  Random random(2);
  EXPECT_EQ(numeric_difference(c.graph, after, random), "");
}

TEST(CountTurns, SlicesInOrderBecomeAScanInput) {
  for (const bool is_backwards : {false, true}) {
    LoopCase c(four_turns);
    const Var state = c.inner(c.outer({2, 3}, "x"), "state");
    const Var counter = c.inner(constant(c.graph, Tensor::scalar(int32_t{is_backwards ? 3 : 0})), "counter");
    const Var sequence = c.inner(c.outer({4, 2, 3}, "sequence"), "sequence", true);
    const Var step = constant(*c.body, Tensor::scalar(int32_t{is_backwards ? -1 : 1}));
    const Var next = tanh(add(state, gather(sequence, counter, 0)));
    const Var goes_on = less(c.turn, constant(*c.body, Tensor::scalar(int64_t{100})));
    c.finish({goes_on, next, add(counter, step), next});
    const Graph after = after_pass(count_turns, c.graph);
    EXPECT_EQ(body_ops(after, "scan"), "add tanh");
    EXPECT_EQ(loop_of(after, "scan").inputs().size(), 2u);
    EXPECT_EQ(to_string(after.type(after.outputs()[2])), "f32[4,2,3]");
  }
}

TEST(CountTurns, OtherPositionsComeFromATable) {
  LoopCase c(four_turns);
  const Var state = c.inner(c.outer({2, 3}, "x"), "state");
  const Var sequence = c.inner(c.outer({7, 2, 3}, "sequence"), "sequence", true);
  const Var at = mul(c.turn, constant(*c.body, Tensor::scalar(int64_t{2})));
  const Var next = tanh(add(mul(state, cast(c.turn, DType::f32)), gather(sequence, at, 0)));
  c.finish({c.condition, next, c.turn});
  EXPECT_EQ(body_ops(after_pass(count_turns, c.graph), "scan"), "gather mul add tanh");
}

TEST(CountTurns, TheConditionMayEndItEarlier) {
  LoopCase c(four_turns);
  const Var state = c.inner(c.outer({2, 3}, "x"), "state");
  const Var goes_on = less(c.turn, constant(*c.body, Tensor::scalar(int64_t{1})));
  c.finish({goes_on, tanh(state), exp(state)});
  const Graph after = after_pass(count_turns, c.graph);
  EXPECT_EQ(to_string(after.type(after.outputs()[1])), "f32[2,2,3]");
}

TEST(CountTurns, AConditionOnWhatIsComputedStays) {
  LoopCase c(four_turns);
  const Var state = c.inner(c.outer({2, 3}, "x"), "state");
  const Var goes_on = less(reduce_sum(state, {0, 1}, false), constant(*c.body, Tensor::scalar(1.0F)));
  c.finish({goes_on, tanh(state)});
  expect_untouched(count_turns, c.graph);
}

TEST(SimplifyBranches, AKnownConditionPutsTheBranchInPlace) {
  const auto branch = [](Var (*op)(Var)) {
    auto graph = std::make_shared<Graph>();
    graph->add_output(op(input(*graph, DType::f32, {4}, "x")).id());
    return GraphRef(graph);
  };
  for (const bool condition : {true, false}) {
    Graph graph;
    const Var x = input(graph, DType::f32, {4}, "x");
    const Attributes branches{{"then_branch", branch(relu)}, {"else_branch", branch(tanh)}};
    const Var known = constant(graph, Tensor::scalar(condition));
    graph.add_output(apply_all(get_op("if"), {known, x}, branches, 1)[0].id());
    EXPECT_EQ(ops_of(after_pass(simplify_branches, graph)), condition ? "relu" : "tanh");
  }
}

TEST(SimplifyBranches, ConstantsGoIntoTheBranches) {
  const auto branch = [](bool multiplies) {
    auto graph = std::make_shared<Graph>();
    const Var x = input(*graph, DType::f32, {2, 3}, "x");
    const Var w = input(*graph, DType::f32, {3, 3}, "w");
    input(*graph, DType::f32, {2, 3}, "unread");
    graph->add_output(multiplies ? matmul(x, w).id() : tanh(x).id());
    return GraphRef(graph);
  };
  Random random(3);
  Graph graph;
  const Var condition = input(graph, DType::boolean, {}, "condition");
  const Var x = input(graph, DType::f32, {2, 3}, "x");
  const Var w = constant(graph, draw_tensor(random, DType::f32, {3, 3}));
  const Attributes branches{{"then_branch", branch(true)}, {"else_branch", branch(false)}};
  graph.add_output(apply_all(get_op("if"), {condition, x, w, x}, branches, 1)[0].id());
  const Graph after = after_pass(simplify_branches, graph);
  EXPECT_EQ(only_node(after).inputs().size(), 2u);
  EXPECT_EQ(only_node(after).attributes().get<GraphRef>("then_branch")->constants().size(), 1u);
}

}  // namespace
}  // namespace autograph
