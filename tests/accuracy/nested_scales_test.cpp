// Scales go through nested graphs element by element: one that is small has a small one beside a large one.
#include "accuracy/nested_scales.h"

#include <gtest/gtest.h>

#include <functional>

#include "autograph/builder.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"

namespace autograph {
namespace {

const Tensor kUnequal = Tensor::of<float>({2}, {1e6F, 1});

// What a node of `op` gives for inputs of unequal size, behind a multiplication by 3 that gives them scales.
std::vector<ScaledDatum> run_node(const OpDef& op, const Attributes& attributes, const std::vector<Tensor>& inputs,
                                  size_t first_float, int num_outputs) {
  Graph graph("nested");
  std::vector<Var> operands;
  std::vector<ScaledDatum> values;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Var x = input(graph, inputs[k].dtype(), Shape::of(inputs[k].dims()), "");
    operands.push_back(k < first_float ? x : x * 3.0);
    values.push_back({inputs[k], {}});
  }
  for (const Var& y : apply_all(op, operands, attributes, num_outputs)) graph.add_output(y.id());
  return run_scaled(graph, values, {});
}

// Each scale is a few times its element, whatever stands beside it.
void expect_own_scales(const ScaledDatum& y) {
  const std::vector<double> values = y.value.tensor().to_f64();
  ASSERT_TRUE(y.scale.is_present());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_GE(y.scale.data<double>()[i], values[i]) << i;
    EXPECT_LE(y.scale.data<double>()[i], 20 * values[i]) << i;
  }
}

GraphRef graph_with(const std::function<void(Graph&)>& build) {
  auto graph = std::make_shared<Graph>("body");
  build(*graph);
  return graph;
}

TEST(NestedScales, OfTheBranchThatRuns) {
  const GraphRef doubled = graph_with([](Graph& g) { g.add_output((input(g, DType::f32, {2}, "x") * 2.0).id()); });
  const GraphRef same = graph_with([](Graph& g) { g.add_output(input(g, DType::f32, {2}, "x").id()); });
  for (const bool condition : {true, false}) {
    const auto outputs = run_node(if_def(), {{"then_branch", doubled}, {"else_branch", same}},
                                  {Tensor::scalar(condition), kUnequal}, 1, 1);
    expect_own_scales(outputs[0]);
  }
}

TEST(NestedScales, OfStatesAndStacksOfALoop) {
  const GraphRef body = graph_with([](Graph& g) {
    input(g, DType::i64, Shape{}, "turn");
    const Var condition = input(g, DType::boolean, Shape{}, "condition");
    const Var state = input(g, DType::f32, {2}, "state");
    const Var captured = input(g, DType::f32, {2}, "captured");
    g.add_output(condition.id());
    g.add_output((state + captured).id());
    g.add_output((state * 2.0).id());
  });
  const auto outputs = run_node(loop_def(), {{"body", body}, {"num_captures", int64_t{1}}},
                                {Tensor::scalar(int64_t{4}), Tensor::scalar(true), kUnequal, kUnequal}, 2, 2);
  expect_own_scales(outputs[0]);
  EXPECT_EQ(outputs[1].value.tensor().dims(), (Dims{4, 2}));
  expect_own_scales(outputs[1]);
}

TEST(NestedScales, OfScansAlongAnyAxisAndBackwards) {
  const GraphRef body = graph_with([](Graph& g) {
    const Var state = input(g, DType::f32, {2}, "state");
    const Var slice = input(g, DType::f32, {2}, "slice");
    g.add_output((state + slice).id());
    g.add_output((slice * 2.0).id());
  });
  const Tensor scanned = Tensor::of<float>({2, 3}, {1e6F, 2e6F, 3e6F, 1, 2, 3});
  for (const int64_t backwards : {0, 1}) {
    for (const int64_t axis : {0, 1}) {
      const auto outputs = run_node(scan_def(),
                                    {{"body", body},
                                     {"num_scan_inputs", int64_t{1}},
                                     {"scan_input_axes", std::vector<int64_t>{1}},
                                     {"scan_input_directions", std::vector<int64_t>{backwards}},
                                     {"scan_output_axes", std::vector<int64_t>{axis}},
                                     {"scan_output_directions", std::vector<int64_t>{backwards}}},
                                    {kUnequal, scanned}, 0, 2);
      expect_own_scales(outputs[0]);
      expect_own_scales(outputs[1]);
    }
  }
}

// What comes out of a sequence has no origin: all elements may be off as the largest one is.
TEST(NestedScales, OfWhatIsMadeBySequencesAreThoseOfTheLargest) {
  Graph graph("sequence");
  const Var x = input(graph, DType::f32, {2}, "x") * 3.0;
  const Var list = apply(get_op("sequence_construct"), {x, x * 2.0});
  graph.add_output(apply(get_op("concat_from_sequence"), {list}, {{"axis", int64_t{0}}}).id());
  const ScaledDatum y = run_scaled(graph, {{Datum(kUnequal), {}}}, {})[0];
  EXPECT_GE(y.scale.data<double>()[1], 6e6);
}

}  // namespace
}  // namespace autograph
