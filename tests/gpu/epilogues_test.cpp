// Products and convolutions that compute what follows them: on an OpenCL device beside the reference, as one kernel.
#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "backends/gpu/emit/emitted.h"
#include "gpu/nvrtc.h"
#include "gpu/opencl_test_device.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {
namespace {

// A graph with its inputs.
struct Drawn {
  explicit Drawn(uint64_t seed, DType of = DType::f32) : random(seed), dtype(of) {}
  Var input(const Dims& dims) {
    inputs.emplace_back(draw_tensor(random, dtype, dims));
    return graph.input("x" + std::to_string(inputs.size()), dtype, Shape::of(dims));
  }
  Random random;
  DType dtype;
  GraphBuilder graph;
  std::vector<Datum> inputs;
};

// "" where the graph runs as one kernel of the device and agrees with the reference.
std::string compared_as_one(Drawn& drawn, const Var& y, const FloatTolerance& tolerance = {}) {
  drawn.graph.output("y", y);
  const Graph graph = drawn.graph.build();
  const Executable there = compile(graph, on_opencl());
  if (there.kernel_choices().size() != 1) return std::to_string(there.kernel_choices().size()) + " kernels";
  return difference_on_opencl(graph, drawn.inputs, tolerance);
}

// A bias, an activation and a residual, some of them, in some order.
Var with_epilogue(Drawn& drawn, Var y, const Dims& dims, const Dims& bias) {
  const int64_t kind = draw(drawn.random, 0, 4);
  if (kind == 0) return relu(y);
  if (kind != 1) y = add(y, drawn.input(bias));
  if (kind >= 2) y = kind == 3 ? gelu(y) : hard_swish(y);
  if (kind != 2) y = add(drawn.input(dims), y);
  return kind == 4 ? sigmoid(y) * 0.5F : y;
}

TEST(OpenClEpilogues, OfConvolutionsMatchTheReference) {
  AG_NEEDS_OPENCL();
  for (uint64_t seed = 0; seed < 16; ++seed) {
    Drawn drawn(seed);
    const int64_t group = seed % 4 == 3 ? 6 : 1;  // each channel by itself: another kernel
    const int64_t channels = group == 1 ? draw(drawn.random, 1, 9) : group;
    const int64_t out = group == 1 ? draw_one_of<int64_t>(drawn.random, {3, 8, 40}) : group;
    const int64_t extent = draw(drawn.random, 3, 12);
    const Var x = drawn.input({2, channels, extent, extent});
    const Var w = drawn.input({out, channels / group, 3, 3});
    const Var bias = seed % 2 == 0 ? drawn.input({out}) : Var();
    const Var y = conv(x, w, bias, {.pads = {1, 1, 1, 1}, .group = group});
    const Dims dims{2, out, extent, extent};
    EXPECT_EQ(compared_as_one(drawn, with_epilogue(drawn, y, dims, {out, 1, 1})), "") << "seed " << seed;
  }
}

TEST(OpenClEpilogues, OfProductsMatchTheReference) {
  AG_NEEDS_OPENCL();
  for (uint64_t seed = 0; seed < 16; ++seed) {
    Drawn drawn(seed);
    const int64_t rows = draw_one_of<int64_t>(drawn.random, {1, 5, 70});
    const int64_t inner = draw(drawn.random, 1, 40), columns = draw_one_of<int64_t>(drawn.random, {1, 18, 90});
    if (seed % 2 == 0) {
      const Var y = matmul(drawn.input({2, rows, inner}), drawn.input({inner, columns}));
      EXPECT_EQ(compared_as_one(drawn, with_epilogue(drawn, y, {2, rows, columns}, {columns})), "") << "seed " << seed;
    } else {
      const Var y = gemm(drawn.input({rows, inner}), drawn.input({columns, inner}), drawn.input({columns}),
                         {.transpose_b = true});
      EXPECT_EQ(compared_as_one(drawn, with_epilogue(drawn, y, {rows, columns}, {columns})), "") << "seed " << seed;
    }
  }
}

// Between two nodes narrow floats are rounded as if they had been written.
TEST(OpenClEpilogues, OfNarrowFloatsMatchTheReference) {
  AG_NEEDS_OPENCL();
  for (const DType dtype : {DType::f16, DType::bf16}) {
    Drawn drawn(1, dtype);
    const Var y = matmul(drawn.input({20, 12}), drawn.input({12, 20}));
    const Var z = relu(add(y, drawn.input({20})));
    const double unit = dtype == DType::f16 ? 4e-3 : 3e-2;
    EXPECT_EQ(compared_as_one(drawn, z, {unit, unit}), "") << to_string(dtype);
  }
}

}  // namespace
}  // namespace autograph
