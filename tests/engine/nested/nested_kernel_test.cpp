// Control flow whose extents are known is a step of the plan: it works in the arena, and run_into() takes it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "autograph/autodiff.h"
#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "ops/sample.h"

namespace autograph {
namespace {

constexpr int64_t kSteps = 5, kRows = 2, kWidth = 3;

Tensor drawn(uint64_t seed, const Dims& dims) {
  Random random(seed);
  return draw_tensor(random, DType::f32, dims, -1, 1);
}

// h = tanh(h * w + x); y = h + x.
Graph cell() {
  Graph body("cell");
  const Var h = input(body, DType::f32, {kRows, kWidth}, "h"), x = input(body, DType::f32, {kRows, kWidth}, "x");
  const Var w = input(body, DType::f32, {kRows, kWidth}, "w");
  const Var next = tanh(add(mul(h, w), x));
  body.add_output(next.id());
  body.add_output(add(next, x).id());
  return body;
}

struct Scanned {
  Var h, x, w;
  std::vector<Var> outputs;
};

// Scans `x` along axis 1, and stacks along axis 2, last step first.
Scanned scan_along_inner_axes(GraphBuilder& graph) {
  Scanned s;
  s.h = graph.input("h", DType::f32, {kRows, kWidth});
  s.x = graph.input("x", DType::f32, {kRows, kSteps, kWidth});
  s.w = graph.input("w", DType::f32, {kRows, kWidth});
  const std::vector<int64_t> in{1}, out{2}, backwards{1};
  s.outputs = scan({s.h}, {s.x}, cell(), {s.w},
                   {{"scan_input_axes", in}, {"scan_output_axes", out}, {"scan_output_directions", backwards}});
  return s;
}

std::vector<Tensor> inputs_of_scan() {
  return {drawn(1, {kRows, kWidth}), drawn(2, {kRows, kSteps, kWidth}), drawn(3, {kRows, kWidth})};
}

std::vector<Datum> as_datums(const std::vector<Tensor>& tensors) { return {tensors.begin(), tensors.end()}; }

// run_into() on memory full of ones gives what run() and the reference give, bit for bit.
void expect_planned(const Graph& graph, const std::vector<Tensor>& inputs) {
  CompileOptions options;
  const Executable executable = compile(graph, options);
  EXPECT_EQ(executable.print_plan().find("heap"), std::string::npos) << executable.print_plan();
  EXPECT_NE(executable.print_plan().find("nested plan"), std::string::npos) << executable.print_plan();
  const Outputs expected = executable.run(as_datums(inputs));
  std::vector<Tensor> outputs;
  for (size_t k = 0; k < expected.size(); ++k) {
    outputs.push_back(expected[k].tensor().clone());
    std::fill_n(static_cast<char*>(outputs[k].mutable_raw()), outputs[k].size_bytes(), '\1');
  }
  executable.run_into(inputs, outputs);
  options.device = "reference";
  const Outputs reference = compile(graph, options).run(as_datums(inputs));
  for (size_t k = 0; k < expected.size(); ++k) {
    EXPECT_TRUE(outputs[k].bitwise_equal(expected[k].tensor())) << "output " << k;
    EXPECT_EQ(outputs[k].dims(), reference[k].tensor().dims());
    const std::vector<double> got = outputs[k].to_f64(), right = reference[k].tensor().to_f64();
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], right[i], 1e-5) << "output " << k << " at " << i;
  }
}

TEST(NestedKernel, ScansAlongInnerAxesWorkInTheArena) {
  GraphBuilder builder("scan");
  const Scanned s = scan_along_inner_axes(builder);
  builder.output("last", s.outputs[0]);
  builder.output("y", tanh(s.outputs[1]));
  const Graph graph = builder.build();
  expect_planned(graph, inputs_of_scan());
  EXPECT_GT(compile(graph).memory().arena_bytes, 0U);
}

TEST(NestedKernel, WhatTheGradientOfAScanSavesLiesInTheArena) {
  GraphBuilder builder("scan");
  const Scanned s = scan_along_inner_axes(builder);
  const Var loss = reduce_sum(mul(s.outputs[1], s.outputs[1]), {0, 1, 2}, false);
  builder.output("loss", loss);
  const std::vector<Var> gradients = grad(loss, {s.h, s.x, s.w});
  for (size_t k = 0; k < gradients.size(); ++k) builder.output("gradient" + std::to_string(k), gradients[k]);
  const Graph graph = builder.build();
  expect_planned(graph, inputs_of_scan());
  const size_t saved_bytes = kSteps * kRows * kWidth * sizeof(float);
  EXPECT_GE(compile(graph).memory().arena_bytes, saved_bytes);
}

// h doubles while the sum of it is below 100, at most M times.
Graph doubling() {
  GraphBuilder graph("while");
  const Var most = graph.input("M", DType::i64, {}), h = graph.input("h", DType::f32, {kWidth});
  const Var kept = graph.input("kept", DType::f32, {kWidth});
  Graph body("double");
  input(body, DType::i64, {}, "turn");
  input(body, DType::boolean, {}, "condition");
  const Var inner = input(body, DType::f32, {kWidth}, "h"), same = input(body, DType::f32, {kWidth}, "kept");
  const Var next = add(inner, inner);
  body.add_output(less(reduce_sum(next, {0}, false), constant(body, Tensor::scalar(100.0F))).id());
  body.add_output(next.id());
  body.add_output(same.id());
  const std::vector<Var> outputs = loop(most, Var(), {h, kept}, body, {});
  graph.output("h", add(outputs[0], outputs[1]));
  graph.output("kept", outputs[1]);
  return graph.build();
}

TEST(NestedKernel, LoopsThatEndAtAnyTurnWorkInTheArena) {
  const Graph graph = doubling();
  for (const int64_t most : {0, 1, 2, 3, 50}) {
    SCOPED_TRACE(most);
    expect_planned(graph, {Tensor::scalar(most), Tensor::of<float>({kWidth}, {1, 2, 3}), drawn(4, {kWidth})});
  }
}

// A loop in a branch: both plans are part of the one around them.
Graph branches() {
  GraphBuilder graph("branches");
  const Var condition = graph.input("condition", DType::boolean, {});
  const Var h = graph.input("h", DType::f32, {kRows, kWidth}), w = graph.input("w", DType::f32, {kRows, kWidth});
  const Var x = graph.input("x", DType::f32, {kSteps, kRows, kWidth});
  Graph taken("then"), other("else");
  for (Graph* branch : {&taken, &other}) {
    input(*branch, DType::f32, {kRows, kWidth}, "h");
    input(*branch, DType::f32, {kSteps, kRows, kWidth}, "x");
    input(*branch, DType::f32, {kRows, kWidth}, "w");
  }
  const auto in = [](Graph& branch, size_t i) { return Var(branch, branch.inputs()[i]); };
  for (const Var& y : scan({in(taken, 0)}, {in(taken, 1)}, cell(), {in(taken, 2)})) taken.add_output(y.id());
  other.add_output(in(other, 0).id());
  other.add_output(relu(in(other, 1)).id());
  const std::vector<Var> outputs = if_else(condition, taken, other, {h, x, w});
  graph.output("h", tanh(outputs[0]));
  graph.output("y", tanh(outputs[1]));
  return graph.build();
}

TEST(NestedKernel, BranchesAndLoopsInThemWorkInTheArena) {
  for (const bool condition : {false, true}) {
    SCOPED_TRACE(condition);
    expect_planned(branches(), {Tensor::scalar(condition), drawn(5, {kRows, kWidth}), drawn(6, {kRows, kWidth}),
                                drawn(7, {kSteps, kRows, kWidth})});
  }
}

TEST(NestedKernel, WhatOnlyARunTellsIsLeftToTheRun) {
  GraphBuilder graph("growing");
  const Var condition = graph.input("condition", DType::boolean, {});
  const Var x = graph.input("x", DType::f32, {kWidth});
  Graph once("once"), twice("twice");
  once.add_output(input(once, DType::f32, {kWidth}, "x").id());
  const Var inner = input(twice, DType::f32, {kWidth}, "x");
  twice.add_output(apply(get_op("concat"), {inner, inner}, {{"axis", int64_t{0}}}).id());
  graph.output("y", if_else(condition, once, twice, {x})[0]);
  const Executable executable = compile(graph.build());
  EXPECT_NE(executable.print_plan().find("heap"), std::string::npos) << executable.print_plan();
  EXPECT_EQ(executable.run({Tensor::scalar(false), drawn(8, {kWidth})})[0].tensor().dims(), Dims{2 * kWidth});
}

// A branch whose types are known reads what a step without a plan has made.
TEST(NestedKernel, WhatReadsTheHeapIsLeftToTheRun) {
  GraphBuilder graph("reads heap");
  const Var condition = graph.input("condition", DType::boolean, {}), x = graph.input("x", DType::f32, {kWidth});
  Graph taken("then"), other("else");
  taken.add_output(tanh(input(taken, DType::f32, {kWidth}, "x")).id());
  other.add_output(relu(input(other, DType::f32, {kWidth}, "x")).id());
  const Var made = reshape(apply(get_op("compress"), {x, greater(x, graph.constant(Tensor::scalar(-2.0F)))}), {kWidth});
  graph.output("y", if_else(condition, taken, other, {made})[0]);
  const Tensor values = drawn(9, {kWidth});
  const Outputs outputs = compile(graph.build()).run({Tensor::scalar(false), values});
  for (int64_t i = 0; i < kWidth; ++i) {
    EXPECT_EQ(outputs[0].tensor().to_f64()[static_cast<size_t>(i)],
              std::max(0.0, values.to_f64()[static_cast<size_t>(i)]));
  }
}

}  // namespace
}  // namespace autograph
