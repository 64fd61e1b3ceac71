// A graph whose extents are bound run by run gives for each of them what it gives as a static graph, bit by bit,
// whatever shapes ran before: plans share packed constants and arenas.
#include <gtest/gtest.h>

#include <thread>

#include "autograph/builder.h"
#include "autograph/compare_values.h"
#include "autograph/compile.h"
#include "autograph/device.h"
#include "autograph/devices.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/recurrent.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "autograph/seeded_inputs.h"
#include "autograph/verify.h"
#include "engine/prepare_graph.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {
namespace {

Tensor weights(Random& random, Dims dims) { return draw_tensor(random, DType::f32, std::move(dims), -0.3, 0.3); }

// Convolutions of several kinds, with and without Winograd's algorithm, on images of any extents.
Graph image_graph() {
  Random random(31);
  Graph graph;
  const auto convolve = [&](const Var& x, int64_t in, int64_t out, int64_t taps, int64_t group = 1) {
    ConvOptions options;
    options.pads = std::vector<int64_t>(4, taps / 2);
    options.group = group;
    const Var w = constant(graph, weights(random, {out, in / group, taps, taps}));
    return relu(conv(x, w, constant(graph, weights(random, {out})), options));
  };
  const Var x = input(graph, DType::f32, Shape({Dim::symbol("n"), 3, Dim::symbol("h"), Dim::symbol("w")}), "x");
  Var y = convolve(x, 3, 32, 3);
  y = y + convolve(y, 32, 32, 3);
  y = convolve(y, 32, 32, 3, 32);
  y = convolve(y, 32, 24, 1);
  graph.add_output(y.id(), "y");
  const Var pooled = reshape(global_average_pool(y), {-1, 24});
  graph.add_output(gemm(pooled, constant(graph, weights(random, {24, 10}))).id(), "classes");
  return graph;
}

// Windows along the rows of images of which the batch alone is open.
Graph batch_graph() {
  Random random(34);
  Graph graph;
  Var y = input(graph, DType::f32, Shape({Dim::symbol("n"), 3, Dim(9), Dim(32)}), "x");
  for (const int64_t taps : {3, 5, 7}) {
    ConvOptions options;
    options.pads = {0, taps / 2, 0, taps / 2};
    y = relu(conv(y, constant(graph, weights(random, {24, taps == 3 ? 3 : 24, 1, taps})), {}, options));
  }
  graph.add_output(y.id(), "y");
  return graph;
}

// Products and an LSTM over sequences of any length.
Graph sequence_graph() {
  Random random(32);
  Graph graph;
  const Var x = input(graph, DType::f32, Shape({Dim::symbol("length"), Dim::symbol("n"), 12}), "x");
  const Var h = relu(matmul(x, constant(graph, weights(random, {12, 40}))));
  const std::vector<Var> y =
      lstm(h, constant(graph, weights(random, {1, 64, 40})), constant(graph, weights(random, {1, 64, 16})));
  graph.add_output(matmul(squeeze(y[0], {1}), constant(graph, weights(random, {16, 40}))).id(), "y");
  return graph;
}

void expect_like_static(const Graph& graph, const std::vector<Datum>& inputs, const std::vector<Datum>& outputs,
                        const CompileOptions& options) {
  const Executable fixed = compile(bind_inputs(graph, inputs), options);
  const auto expected = fixed.run(inputs);
  ASSERT_EQ(outputs.size(), expected.size());
  for (size_t k = 0; k < expected.size(); ++k) {
    EXPECT_TRUE(outputs[k].tensor().bitwise_equal(expected[k].tensor())) << "output " << k;
  }
}

// More shapes than plans are kept for, some of them twice.
void expect_any_extents(const Graph& graph, const std::vector<std::string>& names, int64_t most) {
  CompileOptions options;
  options.threads = 2;
  options.expert.fixed_threads = true;  // fewer ones beside busy neighbours add up in another order
  const Executable executable = compile(graph, options);
  Random random(33);
  std::vector<std::vector<Datum>> seen;
  for (int i = 0; i < 24; ++i) {
    SeedOptions seeds;
    for (const std::string& name : names) seeds.dims[name] = draw(random, 1, most);
    const bool again = i % 4 == 3;
    const std::vector<Datum> inputs =
        again ? seen[static_cast<size_t>(draw(random, 0, 2))] : seeded_inputs(graph, seeds);
    seen.push_back(inputs);
    SCOPED_TRACE(to_string(inputs[0].tensor().type()));
    expect_like_static(graph, inputs, executable.run(inputs), options);
  }
}

TEST(NewShapes, ImagesOfAnyExtents) { expect_any_extents(image_graph(), {"n", "h", "w"}, 20); }

TEST(NewShapes, LinesOfAnyBatch) { expect_any_extents(batch_graph(), {"n"}, 20); }

TEST(NewShapes, SequencesOfAnyLength) { expect_any_extents(sequence_graph(), {"length", "n"}, 9); }

// What four threads, each with a shape of its own, get from one executable.
struct OwnShapes {
  std::vector<std::vector<Datum>> inputs = std::vector<std::vector<Datum>>(4);
  std::vector<std::vector<Datum>> outputs = std::vector<std::vector<Datum>>(4);
};

OwnShapes run_at_once(const Graph& graph, const CompileOptions& options) {
  const Executable executable = compile(graph, options);
  OwnShapes result;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < result.inputs.size(); ++t) {
    SeedOptions seeds;
    seeds.dims = {{"n", 1}, {"h", 9 + static_cast<int64_t>(t)}, {"w", 17}};
    result.inputs[t] = seeded_inputs(graph, seeds);
    threads.emplace_back([&, t] { result.outputs[t] = executable.run(result.inputs[t]); });
  }
  for (std::thread& thread : threads) thread.join();
  return result;
}

TEST(NewShapes, ThreadsWithShapesOfTheirOwn) {
  const Graph graph = image_graph();
  CompileOptions options;
  options.expert.fixed_threads = true;
  const OwnShapes runs = run_at_once(graph, options);
  for (size_t t = 0; t < runs.inputs.size(); ++t) expect_like_static(graph, runs.inputs[t], runs.outputs[t], options);
}

// A run may then have fewer threads, whose kernels add up in another order: the last bits differ.
TEST(NewShapes, ThreadsWithShapesOfTheirOwnBesideNeighbours) {
  const Graph graph = image_graph();
  const OwnShapes runs = run_at_once(graph, {});
  for (size_t t = 0; t < runs.inputs.size(); ++t) {
    const auto expected = compile(bind_inputs(graph, runs.inputs[t]), {}).run(runs.inputs[t]);
    const Difference difference = compare_all(runs.outputs[t], expected, {});
    EXPECT_TRUE(difference.ok) << difference.why;
  }
}

// What is copied for each shape has no gaps where passes removed nodes; all else of the graph is there.
TEST(NewShapes, GraphsAreRenumberedWithAllThatTheyHave) {
  Graph graph = image_graph();
  const Var x(graph, graph.inputs()[0]);
  const Var total(graph, graph.add_state(Tensor::zeros(DType::f32, {1, 1, 1, 1}), "total"));
  const Var sum = total + reduce_sum(x, {});
  graph.set_value_name(sum.id(), "sum");
  graph.set_update(total.id(), sum.id());
  const Var kept = exp(x);
  graph.keep(kept.id());
  graph.add_node(neg_def(), {x.id()});  // nobody needs it
  ASSERT_EQ(graph.erase_dead(), 1U);
  const Graph copy = renumbered(graph);
  verify(copy);
  EXPECT_EQ(copy.node_capacity(), graph.num_nodes());
  EXPECT_LT(copy.node_capacity(), graph.node_capacity());
  EXPECT_EQ(structural_hash(copy), structural_hash(graph));
  EXPECT_EQ(copy.inputs().size(), graph.inputs().size());
  EXPECT_EQ(copy.value(copy.inputs()[0]).name(), "x");
  EXPECT_EQ(copy.output_name(1), "classes");
  ASSERT_EQ(copy.updates().size(), 1U);
  EXPECT_EQ(copy.value(copy.updates()[0].state).name(), "total");
  EXPECT_EQ(copy.value(copy.updates()[0].value).name(), "sum");
  EXPECT_EQ(copy.kept().size(), 1U);
}

// Weights that became next to 0 when a normalization was folded into them: done once, so that all plans share them.
TEST(NewShapes, FoldedWeightsAreFlushedOnce) {
  Graph graph;
  const Var x = input(graph, DType::f32, Shape({1, 2, Dim::symbol("h"), 4}), "x");
  const auto row = [&](float second) { return constant(graph, Tensor::of<float>({2}, {1, second})); };
  const Var w = constant(graph, Tensor::of<float>({2, 2, 1, 1}, {1, 1, 0x1p-60F, 0x1p-60F}));
  graph.add_output(batch_normalization(conv(x, w), row(0x1p-60F), row(1), row(1), row(1)).id());
  const OpenGraph open = prepare_open_graph(graph, get_device("cpu"), {}, nullptr);
  ASSERT_EQ(open.graph.num_nodes(), 1U);
  const Node& node = open.graph.node(open.graph.nodes().front());
  const Tensor& folded = open.graph.value(node.input(1)).constant();
  EXPECT_EQ(folded.elements<float>()[2], 0);
  EXPECT_TRUE(open.flushed.contains(folded.raw()));
}

}  // namespace
}  // namespace autograph
