// What models that go on from call to call do on an OpenCL device: write into caches of keys and values, convolve with
// the past, walk backwards.
#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/error.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "gpu/opencl_test_device.h"
#include "ops/sample.h"
#include "support/message_of.h"

namespace autograph {
namespace {

Graph scatter_graph(DType dtype, const Dims& cache, const Dims& update, const std::string& mode) {
  GraphBuilder graph;
  const Var x = graph.input("cache", dtype, Shape::of(cache)), fresh = graph.input("update", dtype, Shape::of(update));
  const Var first = graph.input("first", DType::i64, {cache[0]});
  graph.output("y", tensor_scatter(x + x, fresh, first, 2, mode));  // in place
  return graph.build();
}

TEST(OpenClCaches, AreWrittenWhereEachBatchEntryStands) {
  AG_NEEDS_OPENCL();
  const Dims cache{3, 2, 9, 4}, update{3, 2, 5, 4};
  Random random(1);
  for (const DType dtype : {DType::f16, DType::i64}) {
    const Tensor x = draw_tensor(random, dtype, cache), fresh = draw_tensor(random, dtype, update);
    EXPECT_EQ(
        difference_on_opencl(scatter_graph(dtype, cache, update, "linear"), {x, fresh, Tensor::vector({0, 4, 2})}), "");
    EXPECT_EQ(
        difference_on_opencl(scatter_graph(dtype, cache, update, "circular"), {x, fresh, Tensor::vector({0, 8, 6})}),
        "");
  }
}

TEST(OpenClCaches, TellPositionsBeyondTheirEnd) {
  AG_NEEDS_OPENCL();
  const Executable there = compile(scatter_graph(DType::f32, {2, 1, 4, 1}, {2, 1, 2, 1}, "linear"), on_opencl());
  const Tensor x = Tensor::zeros(DType::f32, {2, 1, 4, 1}), fresh = Tensor::zeros(DType::f32, {2, 1, 2, 1});
  for (const int64_t wrong : {-1, 3}) {
    const std::string message = message_of<ValueError>([&] { there.run({x, fresh, Tensor::vector({0, wrong})}); });
    const std::string expected =
        "[tensor_scatter] write_indices: expected 0..2, got " + std::to_string(wrong) + " (in ";
    EXPECT_EQ(message.find(expected), 0U) << message;
  }
}

TEST(OpenClCaches, TellLengthsBeyondTheLastStep) {
  AG_NEEDS_OPENCL();
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {4, 2}), lengths = graph.input("lengths", DType::i64, {2});
  graph.output("y", reverse_sequence(x, lengths));
  const Executable there = compile(graph.build(), on_opencl());
  const Tensor steps = Tensor::zeros(DType::f32, {4, 2});
  const std::string message = message_of<ValueError>([&] { there.run({steps, Tensor::vector({4, 5})}); });
  EXPECT_EQ(message.find("[reverse_sequence] sequence_lens: expected 0..4, got 5 (in "), 0U) << message;
}

// The past is longer than the input, and shorter.
TEST(OpenClCaches, AreConvolved) {
  AG_NEEDS_OPENCL();
  for (const int64_t length : {2, 7}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      GraphBuilder graph;
      const Var x = graph.input("x", dtype, {2, 3, length}), w = graph.input("w", dtype, {3, 1, 5});
      const Var bias = graph.input("bias", dtype, {3}), past = graph.input("past", dtype, {2, 3, 4});
      const std::vector<Var> found = causal_conv_with_state(x, w, bias, past, "silu");
      graph.output("y", found[0]);
      graph.output("state", found[1]);
      Random random(2);
      const std::vector<Datum> inputs{draw_tensor(random, dtype, {2, 3, length}), draw_tensor(random, dtype, {3, 1, 5}),
                                      draw_tensor(random, dtype, {3}), draw_tensor(random, dtype, {2, 3, 4})};
      const FloatTolerance tolerance = dtype == DType::f32 ? FloatTolerance{} : FloatTolerance{1e-2, 1e-2};
      EXPECT_EQ(difference_on_opencl(graph.build(), inputs, tolerance), "") << to_string(dtype) << ", " << length;
    }
  }
}

}  // namespace
}  // namespace autograph
