// CompileOptions::check_nan where nodes are joined, and where a NaN comes in from outside.
#include "engine/check/node_by_node.h"

#include <gtest/gtest.h>

#include <limits>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "support/message_of.h"

namespace autograph {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

CompileOptions checking(NanCheck check) {
  CompileOptions options;
  options.threads = 1;
  options.check_nan = check;
  return options;
}

Tensor row(std::vector<float> elements) {
  const auto size = static_cast<int64_t>(elements.size());
  return Tensor::of<float>({1, size}, elements);
}

std::string message_of_run(const Graph& graph, NanCheck check, const Tensor& x) {
  const Executable executable = compile(graph, checking(check));
  return message_of<NonfiniteError>([&] { executable.run({x}); });
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Kernels of a product with relu may make a number of NaN.
TEST(NanCheck, ANanInAWeightIsNamed) {
  Graph graph;
  const Var x = input(graph, DType::f32, {1, 2}, "x");
  const Var w = constant(graph, Tensor::of<float>({2, 2}, {1, 2, 3, kNan}), "fc.weight");
  graph.add_output(relu(matmul(x, w)).id());
  for (const NanCheck check : {NanCheck::steps, NanCheck::nodes}) {
    const std::string message = message_of_run(graph, check, row({1, 1}));
    EXPECT_TRUE(contains(message, "is NaN, as is element 3 of input 1 'fc.weight' (a constant)")) << message;
    EXPECT_TRUE(contains(message, " matmul: ")) << message;
  }
}

TEST(NanCheck, ANanInAnInputIsNamedWhereItSpreads) {
  Graph graph;
  const Var x = input(graph, DType::f32, {1, 2}, "x");
  const Var known = apply(get_op("where"), {apply(get_op("is_nan"), {x}), scalar_like(x, 7), x});
  graph.add_output(known.id(), "known");
  const Executable fills = compile(graph, checking(NanCheck::steps));
  EXPECT_EQ(fills.run({row({1, kNan})})[0].tensor().to_f64(), (std::vector<double>{1, 7}));
  graph.add_output(exp(x).id(), "exp");
  const std::string message = message_of_run(graph, NanCheck::steps, row({1, kNan}));
  EXPECT_TRUE(contains(message, "element 1 is NaN, as is element 1 of input 0 'x' (an input of the graph)")) << message;
}

TEST(NanCheck, InfinitiesComeInAsMasksButMakeNoNan) {
  Graph graph;
  const Var x = input(graph, DType::f32, {1, 2}, "x");
  const Var mask = constant(graph, row({0, -kInfinity}), "mask");
  graph.add_output(softmax(x + mask, -1).id());
  for (const NanCheck check : {NanCheck::steps, NanCheck::nodes}) {
    EXPECT_EQ(compile(graph, checking(check)).run({row({1, 1})})[0].tensor().to_f64(), (std::vector<double>{1, 0}));
    const std::string message = message_of_run(graph, check, row({1, kInfinity}));
    EXPECT_TRUE(contains(message, "element 1 is NaN, inputs hold infinities and no NaN")) << message;
    EXPECT_TRUE(contains(message, " add: ")) << message;
  }
}

// The chain is one step of the plan.
TEST(NanCheck, NamesTheNodeInsideAJoinedStep) {
  Graph graph;
  const Var x = input(graph, DType::f32, {1, 2}, "x");
  graph.add_output((exp(x * 100) + 1).id());
  const Executable executable = compile(graph, checking(NanCheck::steps));
  ASSERT_EQ(executable.graph().num_nodes(), 1U);
  const std::string message = message_of<NonfiniteError>([&] { executable.run({row({0, 1})}); });
  EXPECT_TRUE(contains(message, "element 1 is infinite, all inputs are finite: input 0 f32[1,2] has min 0, max 100"))
      << message;
  EXPECT_TRUE(contains(message, " exp: ")) << message;
  std::vector<Tensor> outputs{Tensor::zeros(DType::f32, {1, 2})};
  EXPECT_EQ(message_of<NonfiniteError>([&] { executable.run_into({row({0, 1})}, outputs); }), message);
}

TEST(NanCheck, WhatAJoinedStepMakesANumberIsSeenBehindEveryNodeAlone) {
  Graph graph;
  const Var x = input(graph, DType::f32, {1, 2}, "x");
  const Var is_positive = apply(get_op("greater"), {x, scalar_like(x, 0)});
  graph.add_output(apply(get_op("where"), {is_positive, log(x), scalar_like(x, 0)}).id());
  const auto outputs = compile(graph, checking(NanCheck::steps)).run({row({1, -1})});
  EXPECT_EQ(outputs[0].tensor().to_f64(), (std::vector<double>{0, 0}));
  const std::string message = message_of_run(graph, NanCheck::nodes, row({1, -1}));
  EXPECT_TRUE(contains(message, " log: ")) << message;
}

Var sums_of(const Var& x) { return apply(get_op("cum_sum"), {x, constant_like(x, Tensor::of<int64_t>({}, {1}))}); }

// Nodes run again on what was there before the run, or not at all.
TEST(NanCheck, StatesThatWereUpdatedAreNotReadAgain) {
  Graph graph;
  const Var x = input(graph, DType::f32, {1, 2}, "x");
  const Var w = state(graph, row({1, 1}), "w");
  update(w, sums_of(w * x));
  graph.add_output(sums_of(exp(x)).id());
  const Executable executable = compile(graph, checking(NanCheck::steps));
  executable.run({row({1, 2})});
  EXPECT_EQ(executable.states().get("w").to_f64(), (std::vector<double>{1, 3}));
  StateStore states = executable.states();
  states.set("w", row({3e38F, 3e38F}));
  const std::string message = message_of<NonfiniteError>([&] { executable.run({row({1, 1})}); });
  EXPECT_TRUE(contains(message, "states had been updated by then")) << message;
  EXPECT_TRUE(contains(message, " cum_sum: ")) << message;
}

TEST(NanCheck, BeforeStatesAreUpdatedNodesRunAgain) {
  Graph graph;
  const Var x = input(graph, DType::f32, {1, 2}, "x");
  const Var w = state(graph, row({1, 1}), "w");
  const Var product = sums_of(exp(w * x) - 1);
  update(w, product * w);
  graph.add_output(product.id());
  const Executable executable = compile(graph, checking(NanCheck::steps));
  const std::string message = message_of<NonfiniteError>([&] { executable.run({row({1, 100})}); });
  EXPECT_TRUE(contains(message, " exp: ")) << message;
  EXPECT_EQ(executable.states().get("w").to_f64(), (std::vector<double>{1, 1}));
}

}  // namespace
}  // namespace autograph
