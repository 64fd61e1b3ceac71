// Products with packed weights of 4 and 8 bits against their definition, on every instruction set.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

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

// Each block of x to multiples of 1/32767 of its largest number: what kernels may do, and what they then leave as it
// is. Then `odd` to the first block of row 1.
void round_rows(OpSample& sample, int64_t block, std::optional<float> odd = {}) {
  const Tensor given = sample.inputs[0].tensor();
  const int64_t k = given.dims().back();
  std::vector<float> x(given.data<float>(), given.data<float>() + given.num_elements());
  for (int64_t row = 0; row < static_cast<int64_t>(x.size()); row += k) {
    for (int64_t begin = 0; begin < k; begin += block) {
      float* const first = x.data() + row + begin;
      float* const last = x.data() + row + std::min(begin + block, k);
      float largest = 0;
      for (const float* i = first; i != last; ++i) largest = std::max(largest, std::abs(*i));
      for (float* i = first; i != last; ++i) *i = std::nearbyint(*i * (32767 / largest)) * (largest / 32767);
    }
  }
  if (odd) std::fill_n(x.begin() + k, block, *odd);
  sample.inputs[0] = Tensor::of<float>(given.dims(), x);
}

OpSample rounding_sample(Random& random, const BlockShape& shape) {
  OpSample sample = block_sample(random, shape);
  sample.attributes.set("x_bits", int64_t{16});
  return sample;
}

TEST(BlockMatmul, RoundedRowsOfRandomShapes) {
  with_and_without_vnni([] {
    Random random(5);
    for (int i = 0; i < 60; ++i) {
      const BlockShape shape{draw(random, 1, 30), draw(random, 1, 100), draw(random, 1, 600),
                             draw_one_of<int64_t>(random, {4, 8}), draw_one_of<int64_t>(random, {8, 16, 32, 128, 256})};
      SCOPED_TRACE(
          fmt::format("{} x {} x {}, {} bits, blocks of {}", shape.rows, shape.n, shape.k, shape.bits, shape.block));
      OpSample sample = rounding_sample(random, shape);
      round_rows(sample, shape.block);
      expect_definition(sample, 1);
    }
  });
}

TEST(BlockMatmul, RoundedRowsByThreads) {
  Random random(6);
  for (const int64_t rows : {1, 4, 5, 150}) {
    OpSample sample = rounding_sample(random, {rows, 333, 1000, 4, 32});
    round_rows(sample, 32);
    expect_definition(sample, 2);
  }
}

// The largest numbers of both in all places, as large a block as is taken, and one more.
TEST(BlockMatmul, SumsOfRoundedRowsFit32Bits) {
  with_and_without_vnni([] {
    for (const int64_t bits : {4, 8}) {
      for (const int64_t block : {256, 512}) {
        Random random(7);
        OpSample sample = rounding_sample(random, {5, 20, block, bits, block});
        sample.inputs[0] = Tensor::of<float>({5, block}, std::vector<float>(static_cast<size_t>(5 * block), -1.0F));
        sample.inputs[1] = Tensor::of<uint8_t>({20, 1, block * bits / 8},
                                               std::vector<uint8_t>(static_cast<size_t>(20 * block * bits / 8), 255));
        expect_definition(sample, 1);
      }
    }
  });
}

// What cannot be rounded is multiplied as it is, and what may not.
TEST(BlockMatmul, RowsThatAreNotRounded) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  on_every_isa([] {
    Random random(8);
    for (const float odd : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN(), 1e35F, 1e-36F, 0.0F}) {
      for (const int64_t rows : {2, 9}) {
        OpSample sample = rounding_sample(random, {rows, 40, 70, 4, 16});
        round_rows(sample, 16, odd);
        SCOPED_TRACE(odd);
        expect_definition(sample, 1);
      }
    }
    const OpSample sample = rounding_sample(random, {3, 40, 70, 4, 32});
    expect_reference(simd::block_matmul_kernel(),
                     KernelCase(block_matmul_def(), sample, {.constant_weights = true, .exact = true}), {1e-5, 1e-5});
  });
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
  OpSample odd = sample;
  sample.attributes.set("k", int64_t{30});
  EXPECT_THROW(KernelCase(block_matmul_def(), sample), ShapeError);
  odd.attributes.set("x_bits", int64_t{8});
  EXPECT_THROW(KernelCase(block_matmul_def(), odd), ValueError);
}

}  // namespace
}  // namespace autograph
