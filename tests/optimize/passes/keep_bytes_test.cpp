#include <gtest/gtest.h>

#include "autograph/ops/quantize.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

struct Parameters {
  float scale = 0.02F;
  double zero = 7;
};

Var zero_point(Graph& graph, double value) {
  Random random(1);
  return constant(graph, draw_tensor(random, DType::u8, {}, value, value));
}

Var bytes(Graph& graph) { return input(graph, DType::u8, Shape::of({1, 2, 4, 4}), "x"); }

Var dequantized(Var x, Parameters p = {}) {
  return dequantize_linear(x, scalar(x.graph(), p.scale), zero_point(x.graph(), p.zero));
}

Var quantized(Var x, Parameters p = {}) {
  return quantize_linear(x, scalar(x.graph(), p.scale), zero_point(x.graph(), p.zero));
}

// Equal on every byte there is.
Graph after_keep_bytes(const Graph& before, bool expect_change) {
  Graph after = before;
  PassContext context = willing_device();
  EXPECT_EQ(keep_bytes(after, context), expect_change) << ops_of(before);
  after.erase_dead();
  verify(after);
  CompileOptions options;
  options.device = "reference";
  options.expert.use_passes = false;
  for (int first = 0; first < 256; first += 32) {
    std::vector<uint8_t> elements(32);
    for (int i = 0; i < 32; ++i) elements[static_cast<size_t>(i)] = static_cast<uint8_t>(first + i);
    const std::vector<Datum> inputs{Tensor::of<uint8_t>({1, 2, 4, 4}, elements)};
    EXPECT_EQ(difference(compile(after, options).run(inputs), compile(before, options).run(inputs), {0, 0}), "");
  }
  return after;
}

TEST(KeepBytes, PoolsAndMovesBytes) {
  Graph graph;
  const Var pooled = quantized(max_pool(dequantized(bytes(graph)), {.kernel = {2, 2}, .pads = {1, 1, 0, 0}}));
  const Var moved = quantized(transpose(dequantized(pooled), {0, 2, 3, 1}));
  graph.add_output(moved.id(), "y");
  EXPECT_EQ(ops_of(after_keep_bytes(graph, true)), "max_pool transpose");
}

TEST(KeepBytes, RemovesAPairThatUndoesItself) {
  Graph graph;
  const Var pooled = max_pool(bytes(graph), {.kernel = {2, 2}});
  graph.add_output(quantized(dequantized(pooled)).id(), "y");
  EXPECT_EQ(ops_of(after_keep_bytes(graph, true)), "max_pool");
}

// 50 * 1e37 is infinite, which quantizes to 255.
TEST(KeepBytes, LeavesScalesAtWhichBytesOverflow) {
  for (const float scale : {1e37F, 3e38F}) {
    Graph graph;
    const Parameters p{scale, 0};
    graph.add_output(quantized(max_pool(dequantized(bytes(graph), p), {.kernel = {2, 2}}), p).id(), "y");
    EXPECT_EQ(ops_of(after_keep_bytes(graph, false)), "dequantize_linear max_pool quantize_linear");
  }
}

TEST(KeepBytes, LeavesADequantizationToItsOtherReaders) {
  Graph graph;
  const Var x = dequantized(bytes(graph));
  graph.add_output(quantized(max_pool(x, {.kernel = {2, 2}})).id(), "y");
  graph.add_output(x.id(), "z");
  EXPECT_EQ(ops_of(after_keep_bytes(graph, true)), "dequantize_linear max_pool");
}

TEST(KeepBytes, LeavesOtherScalesZeroPointsAndReaders) {
  for (const int kind : {0, 1, 2, 3}) {
    Graph graph;
    const Var x = dequantized(bytes(graph));
    const Var pooled = kind == 3 ? average_pool(x, {.kernel = {2, 2}}) : max_pool(x, {.kernel = {2, 2}});
    const Parameters other{kind == 0 ? 0.03F : 0.02F, kind == 1 ? 8.0 : 7.0};
    graph.add_output(quantized(pooled, other).id(), "y");
    if (kind == 2) graph.add_output(pooled.id(), "z");
    after_keep_bytes(graph, false);
  }
}

}  // namespace
}  // namespace autograph
