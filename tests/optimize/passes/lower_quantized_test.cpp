#include <gtest/gtest.h>

#include "autograph/ops/quantize.h"
#include "autograph/random.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"
#include "support/graphs/quantized_graphs.h"

namespace autograph {
namespace {

PassContext device_without_kernels() {
  PassContext context = willing_device();
  context.has_kernel = context.expects_kernel = [](const Graph&, NodeId) { return false; };
  return context;
}

Var constant_of(Graph& graph, Random& random, DType dtype, Dims dims, double low, double high) {
  return constant(graph, draw_tensor(random, dtype, std::move(dims), low, high));
}

// Outputs of both by the reference, for any bytes.
std::string apart(const Graph& before, const Graph& after, Random& random) {
  CompileOptions options;
  options.device = "reference";
  options.expert.use_passes = false;
  const std::vector<Datum> inputs = random_bytes(before, random);
  return more_than_a_step(compile(after, options).run(inputs)[0].tensor(),
                          compile(before, options).run(inputs)[0].tensor());
}

// `scales` and `zeros`: of the weights.
Graph conv_of(Random& random, Dims scales, Dims zeros, bool has_bias) {
  Graph graph;
  const DType dtype = draw_one_of(random, {DType::u8, DType::i8});
  const Var x = input(graph, dtype, Shape::of({2, 4, 9, 9}), "x");
  const auto draw_as = [&](DType type, Dims dims, double low, double high) {
    return constant_of(graph, random, type, std::move(dims), low, high);
  };
  std::vector<Var> operands{x,
                            draw_as(DType::f32, {1}, 0.01, 0.05),
                            draw_as(dtype, {}, 0, 9),
                            draw_as(DType::i8, {6, 2, 3, 3}, -100, 100),
                            draw_as(DType::f32, std::move(scales), 0.01, 0.02),
                            draw_as(DType::i8, std::move(zeros), 0, 3),
                            draw_as(DType::f32, {}, 0.1, 0.4),
                            draw_as(DType::u8, {}, 90, 110)};
  if (has_bias) operands.push_back(draw_as(DType::i32, {6}, -500, 500));
  const Var y = apply(get_op("qlinear_conv"), operands, {{"group", int64_t{2}}, {"pads", Dims{1, 1, 1, 1}}});
  graph.add_output(y.id(), "y");
  return graph;
}

TEST(LowerQuantized, WritesConvolutionsWithDequantizedTensors) {
  Random random(1);
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    const Dims of_weights = i % 2 == 0 ? Dims{6} : Dims{};
    const Graph before = conv_of(random, of_weights, of_weights, i % 3 != 0);
    Graph after = before;
    PassContext context = device_without_kernels();
    EXPECT_TRUE(lower_quantized(after, context));
    verify(after);
    const std::string bias = i % 3 != 0 ? "dequantize_linear " : "";
    EXPECT_EQ(ops_of(after), "dequantize_linear dequantize_linear " + bias + "conv quantize_linear");
    EXPECT_EQ(apart(before, after, random), "");
  }
}

TEST(LowerQuantized, WritesProductsWithDequantizedTensors) {
  Random random(2);
  for (const Dims& of_columns : {Dims{}, Dims{5}}) {
    Graph before;
    const Var a = input(before, DType::u8, Shape::of({3, 4, 7}), "a");
    const auto draw_as = [&](DType type, Dims dims, double low, double high) {
      return constant_of(before, random, type, std::move(dims), low, high);
    };
    const Var y = apply(
        get_op("qlinear_matmul"),
        {a, draw_as(DType::f32, {}, 0.01, 0.05), draw_as(DType::u8, {}, 100, 120),
         draw_as(DType::i8, {7, 5}, -100, 100), draw_as(DType::f32, of_columns, 0.01, 0.02),
         draw_as(DType::i8, of_columns, 0, 3), draw_as(DType::f32, {}, 0.1, 0.4), draw_as(DType::u8, {}, 90, 110)});
    before.add_output(y.id(), "y");
    Graph after = before;
    PassContext context = device_without_kernels();
    EXPECT_TRUE(lower_quantized(after, context));
    EXPECT_EQ(ops_of(after), "dequantize_linear dequantize_linear matmul quantize_linear");
    EXPECT_EQ(apart(before, after, random), "");
  }
}

TEST(LowerQuantized, LeavesWhatHasAKernel) {
  Random random(3);
  expect_untouched(lower_quantized, conv_of(random, {6}, {6}, true));
}

// A scale that is computed, and a row of scales beside one zero point.
TEST(LowerQuantized, LeavesScalesThatItCannotWrite) {
  Random random(4);
  Graph row = conv_of(random, {6}, {}, true);
  Graph computed = conv_of(random, {}, {}, true);
  const Node& node = only_node(computed);
  const ValueId scale = input(computed, DType::f32, Shape(), "scale").id();
  computed.replace_uses(node.inputs()[6], scale);
  for (Graph* graph : {&row, &computed}) {
    PassContext context = device_without_kernels();
    EXPECT_FALSE(lower_quantized(*graph, context));
    graph->erase_dead();
    EXPECT_EQ(ops_of(*graph), "qlinear_conv");
  }
}

}  // namespace
}  // namespace autograph
