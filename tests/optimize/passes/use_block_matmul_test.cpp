#include <gtest/gtest.h>

#include "autograph/op_def.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/quantize.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "ops/defs.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"
#include "support/graphs/quantized_graphs.h"

namespace autograph {
namespace {

constexpr int64_t kInner = 70, kOutputs = 9;

void output(Var y) { y.graph().add_output(y.id(), "y"); }

std::string describe(const NarrowWeights& form) {
  return std::string(to_string(form.dtype)) + (form.outputs_first ? " [n, k]" : " [k, n]") + " block " +
         std::to_string(form.block) + (form.has_zeros ? " with zeros" : "");
}

Var weights(Graph& graph, const NarrowWeights& form) {
  Random random(5);
  return narrow_weights(graph, random, form, kInner, kOutputs);
}

TEST(UseBlockMatmul, TakesWeightsInEachForm) {
  for (const DType dtype : {DType::i4, DType::u4, DType::i8, DType::u8, DType::i2, DType::u2}) {
    for (const bool outputs_first : {false, true}) {
      for (const int64_t block : {NarrowWeights::kOneScale, int64_t{0}, int64_t{16}, int64_t{32}}) {
        for (const bool has_zeros : {false, true}) {
          const NarrowWeights form{
              .dtype = dtype, .outputs_first = outputs_first, .block = block, .has_zeros = has_zeros};
          SCOPED_TRACE(describe(form));
          Graph graph;
          const Var w = weights(graph, form), x = input(graph, DType::f32, Shape{2, 3, kInner}, "x");
          output(matmul(x, outputs_first ? transpose(w, {1, 0}) : w));
          const Graph after = after_pass(use_block_matmul, graph);
          EXPECT_EQ(ops_of(after), "block_matmul");
        }
      }
    }
  }
}

TEST(UseBlockMatmul, LeavesOutZeroPointsInTheMiddle) {
  for (const DType dtype : {DType::i4, DType::u4}) {
    Graph graph;
    const Var x = input(graph, DType::f32, Shape{2, kInner}, "x");
    output(matmul(x, weights(graph, {.dtype = dtype})));
    const Graph after = after_pass(use_block_matmul, graph);
    // Numbers without a sign count from 0.
    EXPECT_EQ(after.node(after.nodes().front()).inputs()[3].is_valid(), dtype == DType::u4);
  }
}

TEST(UseBlockMatmul, TakesAGemmAndItsAddend) {
  for (const bool outputs_first : {false, true}) {
    Graph graph;
    const Var w = weights(graph, {.outputs_first = outputs_first}), x = input(graph, DType::f32, Shape{4, kInner}, "x");
    const Var c = input(graph, DType::f32, Shape{kOutputs}, "c");
    output(gemm(x, w, c, {.transpose_b = outputs_first}));
    EXPECT_EQ(ops_of(after_pass(use_block_matmul, graph)), "block_matmul add");
  }
}

TEST(UseBlockMatmul, LeavesWhatItDoesNotKnow) {
  const auto expect_left = [](auto make) {
    Graph graph;
    output(make(graph, input(graph, DType::f32, Shape{kInner, kInner}, "x")));
    expect_untouched(use_block_matmul, graph);
  };
  expect_left([](Graph& graph, Var x) { return gemm(x, weights(graph, {}), {}, {.alpha = 2}); });
  expect_left([](Graph& graph, Var x) { return gemm(x, weights(graph, {}), {}, {.transpose_a = true}); });
  // Scales of their own along the inner dim.
  expect_left([](Graph& graph, Var x) {
    Random random(7);
    const Var q = constant(graph, draw_tensor(random, DType::i4, {kInner, kOutputs}, -8, 7));
    return matmul(x, dequantize_linear(q, constant(graph, draw_tensor(random, DType::f32, {kInner}, 0.1, 1)), {}, 0));
  });
  // Blocks along the outputs.
  expect_left([](Graph& graph, Var x) {
    Random random(8);
    const Var q = constant(graph, draw_tensor(random, DType::i4, {kInner, 32}, -8, 7));
    const Var scale = constant(graph, draw_tensor(random, DType::f32, {kInner, 2}, 0.1, 1));
    return matmul(x,
                  apply(dequantize_linear_def(), {q, scale, {}}, {{"axis", int64_t{1}}, {"block_size", int64_t{16}}}));
  });
  // Numbers of 16 bits.
  expect_left([](Graph& graph, Var x) {
    Random random(9);
    const Var q = constant(graph, draw_tensor(random, DType::i16, {kInner, kOutputs}, -8, 7));
    return matmul(x, dequantize_linear(q, constant(graph, Tensor::scalar(0.5F)), {}, 0));
  });
}

// As decoders are exported, from f32 and from f16: nothing is computed as floats beforehand.
TEST(UseBlockMatmul, KeepsWeightsNarrowThroughThePipeline) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    Graph graph;
    Random random(4);
    const Var x = input(graph, dtype, Shape{1, kInner}, "x");
    const Var q = constant(graph, draw_tensor(random, DType::i4, {kInner, kOutputs}, -8, 7));
    const Var scale = constant(graph, draw_tensor(random, dtype, {3, kOutputs}, 0.1, 0.2));
    const Var w = apply(dequantize_linear_def(), {q, scale, {}}, {{"axis", int64_t{0}}, {"block_size", int64_t{32}}});
    output(matmul(x, w));
    const Executable program = compile(graph, {.device = "cpu"});
    EXPECT_NE(ops_of(program.graph()).find("block_matmul"), std::string::npos) << ops_of(program.graph());
  }
}

}  // namespace
}  // namespace autograph
