// Products of bytes up to what is quantized again, against the definition.
#include <gtest/gtest.h>

#include <optional>

#include "autograph/ops/linear.h"
#include "autograph/ops/quantize.h"
#include "backends/cpu/simd/kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"
#include "support/graphs/quantized_graphs.h"
#include "support/kernels/byte_kernels.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

// The one node that `graph` becomes, called with bytes; nothing when more than one is left.
std::optional<OpSample> fused_call(Graph graph, Random& random) {
  PassContext context = willing_device();
  use_integers(graph, context);
  graph.erase_dead();
  return graph.num_nodes() == 1 ? std::optional(call_with_bytes(graph, random)) : std::nullopt;
}

KernelDef kernel_of_fused() {
  for (const KernelDef& kernel : simd::quantized_product_kernels()) {
    if (kernel.op == fused_def().name) return kernel;
  }
  return {};
}

using Draw = Graph (*)(Random&);

// `constant_weights`: all inputs but the first are known, up to a residual.
void expect_right(Draw draw_graph, int graphs, bool constant_weights) {
  with_and_without_vnni([&] {
    Random random(1);
    int taken = 0;
    for (int i = 0; i < graphs; ++i) {
      SCOPED_TRACE(i);
      const auto sample = fused_call(draw_graph(random), random);
      if (!sample) continue;
      const KernelSetup setup{.threads = 1 + i % 3, .constant_weights = constant_weights, .first_unknown = 2};
      if (kernel_of_fused().why_not(KernelCase(fused_def(), *sample, setup).call()) == "groups") continue;
      expect_every_form_of_bytes(kernel_of_fused(), *sample, setup);
      ++taken;
    }
    EXPECT_GT(taken, graphs / 4);
  });
}

TEST(QuantizedProduct, RowsTimesAMatrix) { expect_right(random_quantized_product, 150, true); }

TEST(QuantizedProduct, StacksOfWhichNothingIsKnown) { expect_right(random_quantized_stacks, 150, false); }

TEST(QuantizedProduct, Convolutions) { expect_right(random_quantized_conv, 200, true); }

// More rows than stay in cache, more depth than is multiplied at a time; shared by rows and by columns. Weights of u8
// may have any zero point.
TEST(QuantizedProduct, LargeShapes) {
  with_and_without_vnni([] {
    Random random(2);
    for (const Dims& dims : {Dims{230, 1030, 150}, Dims{9, 2500, 300}, Dims{1, 4000, 200}}) {
      Graph graph;
      const Var x = quantized_input(graph, random, {dims[0], dims[1]}, "x");
      const Var q = constant(graph, draw_tensor(random, DType::u8, {dims[1], dims[2]}, 0, 255));
      const Var zeros = constant(graph, draw_tensor(random, DType::u8, {dims[2]}, 0, 255));
      const Var w = dequantize_linear(q, draw_scales(graph, random, 1e-4, 2e-4, {dims[2]}), zeros, 1);
      const Var zero = constant(graph, draw_tensor(random, DType::u8, {}, 100, 100));
      graph.add_output(quantize_linear(matmul(x, w), draw_scales(graph, random, 0.05, 0.1), zero).id(), "y");
      const auto sample = fused_call(graph, random);
      ASSERT_TRUE(sample);
      expect_every_form_of_bytes(kernel_of_fused(), *sample, {.threads = 2, .constant_weights = true});
    }
  });
}

// Steps so small that all is beyond the largest and smallest byte.
TEST(QuantizedProduct, Saturates) {
  on_every_isa([] {
    Random random(3);
    for (const DType dtype : {DType::u8, DType::i8}) {
      Graph graph;
      const Var x = quantized_input(graph, random, {7, 40}, "x");
      const Var w = quantized_weights(graph, random, {40, 21}, 1);
      const Var zero = constant(graph, draw_tensor(random, dtype, {}, 7, 7));
      graph.add_output(quantize_linear(matmul(x, w), constant(graph, Tensor::scalar(1e-6F)), zero).id(), "y");
      const auto sample = fused_call(graph, random);
      ASSERT_TRUE(sample);
      expect_every_form_of_bytes(kernel_of_fused(), *sample, {.constant_weights = true});
    }
  });
}

}  // namespace
}  // namespace autograph
