#include <gtest/gtest.h>

#include "autograph/op_def.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/quantize.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "ops/defs.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

constexpr int64_t kInner = 70, kOutputs = 9;

void output(Var y) { y.graph().add_output(y.id(), "y"); }

struct Form {
  DType dtype = DType::i4;
  bool outputs_first = false;
  int64_t block = 32;  // 0: a scale for each output, -1: one for all
  bool has_zeros = false;
};

std::string describe(const Form& form) {
  return std::string(to_string(form.dtype)) + (form.outputs_first ? " [n, k]" : " [k, n]") + " block " +
         std::to_string(form.block) + (form.has_zeros ? " with zeros" : "");
}

Var weights(Graph& graph, const Form& form) {
  Random random(5);
  const auto turn = [&](int64_t k, int64_t n) { return form.outputs_first ? Dims{n, k} : Dims{k, n}; };
  const bool is_byte = form.dtype == DType::u8 || form.dtype == DType::i8;
  const bool is_two = form.dtype == DType::u2 || form.dtype == DType::i2;
  const bool is_signed = form.dtype == DType::i8 || form.dtype == DType::i4 || form.dtype == DType::i2;
  const double range = is_byte ? 256 : is_two ? 4 : 16, low = is_signed ? -range / 2 : 0;
  const Dims scale_dims = form.block > 0    ? turn((kInner + form.block - 1) / form.block, kOutputs)
                          : form.block == 0 ? Dims{kOutputs}
                                            : Dims{};
  const auto numbers = [&](const Dims& dims) {
    return constant(graph, draw_tensor(random, form.dtype, dims, low, low + range - 1));
  };
  const Var q = numbers(turn(kInner, kOutputs));
  const Var scale = constant(graph, draw_tensor(random, DType::f32, scale_dims, 0.01, 0.1));
  const Var zero = form.has_zeros ? numbers(scale_dims) : Var();
  const int64_t inner_axis = form.outputs_first ? 1 : 0;
  return apply(
      dequantize_linear_def(), {q, scale, zero},
      {{"axis", form.block > 0 ? inner_axis : 1 - inner_axis}, {"block_size", std::max(form.block, int64_t{0})}});
}

TEST(UseBlockMatmul, TakesWeightsInEachForm) {
  for (const DType dtype : {DType::i4, DType::u4, DType::i8, DType::u8, DType::i2, DType::u2}) {
    for (const bool outputs_first : {false, true}) {
      for (const int64_t block : {-1, 0, 16, 32}) {
        for (const bool has_zeros : {false, true}) {
          const Form form{dtype, outputs_first, block, has_zeros};
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
