#include <gtest/gtest.h>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/quantize.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

Var zero_point(Graph& graph, DType dtype, int64_t value) {
  Random random(1);
  return constant(graph, draw_tensor(random, dtype, {}, static_cast<double>(value), static_cast<double>(value)));
}

Var dequantized_input(Graph& graph, Dims dims, const std::string& name) {
  const Var q = input(graph, DType::u8, Shape::of(dims), name);
  return dequantize_linear(q, scalar(graph, 0.02F), zero_point(graph, DType::u8, 7));
}

Var dequantized_weights(Graph& graph, Dims dims) {
  Random random(2);
  const Var q = constant(graph, draw_tensor(random, DType::i8, dims, -100, 100));
  const Var scales = constant(graph, draw_tensor(random, DType::f32, {dims[0]}, 0.01, 0.02));
  const Var zeros = constant(graph, draw_tensor(random, DType::i8, {dims[0]}, 0, 0));
  return dequantize_linear(q, scales, zeros, 0);
}

Var quantized(Var x) { return quantize_linear(x, scalar(x.graph(), 0.05F), zero_point(x.graph(), DType::u8, 3)); }

// The inputs are bytes: drawn from what both signs allow.
Graph after_use_integers(const Graph& before, bool expect_change = true) {
  Random random(3);
  Graph after = before;
  PassContext context = willing_device();
  EXPECT_EQ(use_integers(after, context), expect_change) << ops_of(before);
  after.erase_dead();
  verify(after);
  std::vector<Datum> inputs;
  for (const ValueId v : before.inputs()) {
    inputs.emplace_back(draw_tensor(random, before.type(v).dtype(), before.type(v).shape().static_dims(), 0, 100));
  }
  CompileOptions options;
  options.device = "reference";
  options.expert.use_passes = false;
  EXPECT_EQ(difference(compile(after, options).run(inputs), compile(before, options).run(inputs)), "");
  return after;
}

TEST(UseIntegers, TakesAConvolutionWithResidualAndActivation) {
  Graph graph;
  const Var x = dequantized_input(graph, {1, 4, 5, 5}, "x");
  const Var r = dequantized_input(graph, {1, 3, 5, 5}, "r");
  Random random(4);
  const Var bias = constant(graph, draw_tensor(random, DType::f32, {3}));
  const Var y = conv(x, dequantized_weights(graph, {3, 4, 1, 1}), bias);
  graph.add_output(quantized(relu(add(y, r))).id(), "y");
  const Graph after = after_use_integers(graph);
  const Node& node = only_node(after);
  EXPECT_EQ(node.op().name, "fused");
  EXPECT_EQ(node.inputs().size(), 3u);  // x, the weights, r: all else is inside
  EXPECT_EQ(ops_of(*node.attributes().get<GraphRef>("body")),
            "dequantize_linear dequantize_linear dequantize_linear conv add relu quantize_linear");
}

TEST(UseIntegers, StopsAtAValueWithOtherReaders) {
  Graph graph;
  const Var x = dequantized_input(graph, {1, 4, 5, 5}, "x");
  const Var y = conv(x, dequantized_weights(graph, {3, 4, 1, 1}));
  graph.add_output(quantized(relu(y)).id(), "y");
  graph.add_output(y.id(), "z");
  EXPECT_EQ(ops_of(after_use_integers(graph)), "fused relu quantize_linear");
}

TEST(UseIntegers, LeavesADequantizationToItsOtherReaders) {
  Graph graph;
  const Var x = dequantized_input(graph, {1, 4, 5, 5}, "x");
  graph.add_output(quantized(conv(x, dequantized_weights(graph, {3, 4, 1, 1}))).id(), "y");
  graph.add_output(sigmoid(x).id(), "z");
  const std::string ops = ops_of(after_use_integers(graph));
  EXPECT_NE(ops.find("fused"), std::string::npos) << ops;
  EXPECT_NE(ops.find("dequantize_linear"), std::string::npos) << ops;
}

TEST(UseIntegers, TakesTheLongestChainThatTheDeviceExpectsAKernelFor) {
  Graph graph;
  const Var x = dequantized_input(graph, {6, 4}, "x");
  graph.add_output(quantized(relu(gemm(x, dequantized_weights(graph, {5, 4}), {}, {.transpose_b = true}))).id(), "y");
  PassContext context = willing_device();
  context.expects_kernel = [](const Graph&, NodeId) { return false; };
  Graph after = graph;
  EXPECT_FALSE(use_integers(after, context));
  context.expects_kernel = [](const Graph& g, NodeId id) {
    return g.node(id).attributes().get<GraphRef>("body")->num_nodes() < 5;
  };
  EXPECT_TRUE(use_integers(after, context));
  EXPECT_EQ(ops_of(after), "fused quantize_linear");
}

TEST(UseIntegers, LeavesFloats) {
  Graph floats;
  const Var x = input(floats, DType::f32, {1, 4, 5, 5}, "x");
  floats.add_output(quantized(conv(x, dequantized_weights(floats, {3, 4, 1, 1}))).id(), "y");
  PassContext context = willing_device();
  EXPECT_FALSE(use_integers(floats, context));
}

TEST(UseIntegers, TakesProductsOfWhichNothingIsKnown) {
  Graph graph;
  const Var a = dequantized_input(graph, {2, 4, 5}, "a");
  const Var b = dequantized_input(graph, {2, 5, 6}, "b");
  graph.add_output(quantized(matmul(a, b)).id(), "y");
  EXPECT_EQ(ops_of(after_use_integers(graph)), "fused");
}

TEST(UseIntegers, FoldingKeepsQuantizedWeightsUntilThen) {
  Graph graph;
  const Var x = dequantized_input(graph, {1, 4, 5, 5}, "x");
  graph.add_output(conv(x, dequantized_weights(graph, {3, 4, 1, 1})).id(), "y");
  Graph kept = graph;
  PassContext context = willing_device();
  EXPECT_FALSE(fold_constants_before_integers(kept, context));
  EXPECT_EQ(ops_of(kept), ops_of(graph));
  EXPECT_TRUE(fold_constants(kept, context));
  EXPECT_EQ(ops_of(kept), "dequantize_linear conv");
}

}  // namespace
}  // namespace autograph
