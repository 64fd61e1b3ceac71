// Products with packed weights of 4 and 8 bits against their definition, on every instruction set.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "autograph/op_def.h"
#include "autograph/random.h"
#include "backends/cpu/simd/kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

struct BlockShape {
  int64_t rows, n, k, bits, block;
};

OpSample block_sample(Random& random, const BlockShape& shape) {
  const int64_t blocks = (shape.k + shape.block - 1) / shape.block;
  OpSample sample;
  sample.inputs = {draw_tensor(random, DType::f32, {shape.rows, shape.k}, -1, 1),
                   draw_tensor(random, DType::u8, {shape.n, blocks, shape.block * shape.bits / 8}, 0, 255),
                   draw_tensor(random, DType::f32, {shape.n, blocks}, 0.001, 0.01)};
  sample.inputs.resize(4);
  if (draw_bool(random)) {
    sample.inputs[3] = draw_tensor(random, DType::f32, {shape.n, blocks}, 0, shape.bits == 4 ? 15 : 255);
  }
  sample.attributes = {{"bits", shape.bits}, {"k", shape.k}};
  return sample;
}

void expect_definition(const OpSample& sample, int threads) {
  expect_reference(simd::block_matmul_kernel(),
                   KernelCase(block_matmul_def(), sample, {.threads = threads, .constant_weights = true}),
                   {1e-4, 1e-4});
}

TEST(BlockMatmul, RandomShapes) {
  on_every_isa([] {
    Random random(1);
    for (int i = 0; i < 60; ++i) {
      const BlockShape shape{draw(random, 1, 20), draw(random, 1, 100), draw(random, 1, 300),
                             draw_one_of<int64_t>(random, {4, 8}), draw_one_of<int64_t>(random, {8, 16, 32, 128})};
      SCOPED_TRACE(
          fmt::format("{} x {} x {}, {} bits, blocks of {}", shape.rows, shape.n, shape.k, shape.bits, shape.block));
      expect_definition(block_sample(random, shape), 1);
    }
  });
}

TEST(BlockMatmul, Threads) {
  Random random(2);
  for (const int64_t rows : {1, 3, 37}) {
    expect_definition(block_sample(random, {rows, 333, 1000, 4, 32}), 2);
  }
}

TEST(BlockMatmul, SaysWhatItRefuses) {
  Random random(3);
  const OpSample sample = block_sample(random, {1, 3, 8, 4, 8}), odd = block_sample(random, {1, 3, 8, 4, 4});
  const auto refusal = [](const OpSample& of, bool constant_weights) {
    const KernelCase test(block_matmul_def(), of, {.constant_weights = constant_weights});
    return KernelRun(simd::block_matmul_kernel(), test).refusal();
  };
  EXPECT_EQ(refusal(sample, false), "weights that are computed");
  EXPECT_EQ(refusal(odd, true), "blocks that do not fill words");
}

TEST(BlockMatmulOp, RejectsBlocksThatDoNotFit) {
  Random random(4);
  OpSample sample = block_sample(random, {1, 3, 20, 4, 8});
  sample.attributes.set("k", int64_t{30});
  EXPECT_THROW(KernelCase(block_matmul_def(), sample), ShapeError);
}

}  // namespace
}  // namespace autograph
