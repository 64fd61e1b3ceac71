// Sums, differences and products of dequantized tensors against the definition.
#include <gtest/gtest.h>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/quantize.h"
#include "backends/cpu/simd/kernels.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"
#include "support/graphs/quantized_graphs.h"
#include "support/kernels/byte_kernels.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

Var number(Graph& graph, float value) { return constant(graph, Tensor::scalar(value)); }

// One op of two dequantized inputs, on either side the one that may be smaller, with what may follow it.
Graph random_pair(Random& random) {
  Graph graph;
  Dims dims;
  for (int64_t a = draw(random, 1, 5); a > 0; --a) dims.push_back(draw(random, 1, 9));
  if (draw_bool(random)) dims.back() = draw(random, 30, 90);
  Dims second = dims;
  if (dims.size() >= 3 && draw_bool(random)) {
    std::fill(second.begin() + 2, second.end(), 1);
    const int64_t kind = draw(random, 0, 2);
    if (kind == 0) second[0] = 1;
    if (kind == 1) second.erase(second.begin());
  }
  const bool has_floats = draw(random, 0, 3) == 0;
  Var a = quantized_input(graph, random, dims, "a");
  Var b = has_floats ? input(graph, DType::f32, Shape::of(second), "b") : quantized_input(graph, random, second, "b");
  if (draw_bool(random)) std::swap(a, b);
  const int64_t op = draw(random, 0, 2);
  Var y = op == 0 ? add(a, b) : op == 1 ? sub(a, b) : mul(a, b);
  const int64_t activation = has_floats ? 0 : draw(random, 0, 2);
  if (activation == 1) y = relu(y);
  if (activation == 2) y = clip(y, number(graph, -0.7F), number(graph, 1.3F));
  const DType dtype = draw_one_of(random, {DType::u8, DType::i8});
  const Var zero = constant(graph, draw_tensor(random, dtype, {}, 0, 100));
  const Var scale = draw_scales(graph, random, 0.01, 0.1);
  y = quantize_linear(y, scale, zero);
  if (draw(random, 0, 3) == 0) y = dequantize_linear(y, scale, zero);
  graph.add_output(y.id(), "y");
  return graph;
}

TEST(QuantizedPair, AnyShape) {
  on_every_isa([] {
    Random random(1);
    for (int i = 0; i < 300; ++i) {
      SCOPED_TRACE(i);
      const Graph body = random_pair(random);
      OpSample sample{.inputs = {}, .attributes = {{"body", GraphRef(std::make_shared<Graph>(body))}}};
      for (const Datum& bytes : random_bytes(body, random)) sample.inputs.push_back(bytes);
      sample.num_outputs = 1;
      expect_every_form_of_bytes(simd::quantized_pair_kernel(), sample, {.threads = 1 + i % 3});
    }
  });
}

TEST(QuantizedPair, LeavesAnotherZeroPointBehindIt) {
  Graph graph;
  Random random(2);
  const Var a = quantized_input(graph, random, {40}, "a"), b = quantized_input(graph, random, {40}, "b");
  const Var scale = number(graph, 0.1F);
  const auto zero = [&](uint8_t value) { return constant(graph, Tensor::scalar<uint8_t>(value)); };
  graph.add_output(dequantize_linear(quantize_linear(add(a, b), scale, zero(3)), scale, zero(4)).id(), "y");
  PassContext context = willing_device();
  fuse_elementwise(graph, context);
  ASSERT_EQ(graph.num_nodes(), 1u);
  const KernelCase test(get_op("fused"), call_with_bytes(graph, random));
  EXPECT_EQ(simd::quantized_pair_kernel().why_not(test.call()), "another zero point behind it");
}

}  // namespace
}  // namespace autograph
