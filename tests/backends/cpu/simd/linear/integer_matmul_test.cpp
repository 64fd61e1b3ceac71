// Products of bytes against the reference, bit by bit.
#include <gtest/gtest.h>

#include "autograph/random.h"
#include "backends/cpu/simd/kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

Tensor draw_bytes(Random& random, DType dtype, Dims dims) {
  const double low = dtype == DType::i8 ? -128 : 0;
  return draw_tensor(random, dtype, std::move(dims), low, low + 255);
}

// Stacks, matrices and vectors on both sides; zero points of none, the tensor, or each row and column.
OpSample random_product(Random& random, int64_t most_rows, int64_t most_depth, int64_t most_columns) {
  const int64_t rows = draw(random, 1, most_rows), depth = draw(random, 1, most_depth);
  const int64_t columns = draw(random, 1, most_columns);
  Dims a{rows, depth}, b{depth, columns};
  switch (draw(random, 0, 5)) {
    case 0: a.insert(a.begin(), {2, 3}); break;
    case 1: a.insert(a.begin(), 3), b.insert(b.begin(), 3); break;
    case 2: a.insert(a.begin(), {2, 1}), b.insert(b.begin(), 3); break;
    case 3: b.insert(b.begin(), 2); break;
    case 4: a = {depth}; break;
    default: break;
  }
  const DType a_dtype = draw_one_of(random, {DType::i8, DType::u8}),
              b_dtype = draw_one_of(random, {DType::i8, DType::u8});
  OpSample sample{.inputs = {draw_bytes(random, a_dtype, a), draw_bytes(random, b_dtype, b)}};
  if (draw_bool(random)) {
    const bool per_row = a.size() > 1 && draw_bool(random);
    sample.inputs.emplace_back(draw_bytes(random, a_dtype, per_row ? Dims{rows} : Dims{}));
    sample.inputs.emplace_back(draw_bytes(random, b_dtype, draw_bool(random) ? Dims{columns} : Dims{}));
  }
  return sample;
}

void expect_same(const OpSample& sample, const KernelSetup& setup) {
  expect_reference(simd::integer_matmul_kernel(), KernelCase(matmul_integer_def(), sample, setup), {0, 0});
}

TEST(IntegerMatmul, AnyShape) {
  with_and_without_vnni([] {
    Random random(1);
    for (int i = 0; i < 300; ++i) {
      SCOPED_TRACE(i);
      expect_same(random_product(random, 20, 40, 70), {.threads = 1 + i % 3, .constant_weights = draw_bool(random)});
    }
  });
}

// More than one block of rows and of the depth, shared by rows and by columns.
TEST(IntegerMatmul, LargeShapes) {
  on_every_isa([] {
    Random random(2);
    for (const Dims& dims : {Dims{210, 1030, 50}, Dims{9, 2500, 300}, Dims{1, 4000, 200}}) {
      for (const DType dtype : {DType::i8, DType::u8}) {
        const OpSample sample{.inputs = {draw_bytes(random, DType::u8, {dims[0], dims[1]}),
                                         draw_bytes(random, dtype, {dims[1], dims[2]}),
                                         draw_bytes(random, DType::u8, {}), draw_bytes(random, dtype, {})}};
        expect_same(sample, {.threads = 2, .constant_weights = true});
      }
    }
  });
}

// Known weights whose products of two neighbours just fit 16 bits, and others, in groups of four of the depth.
TEST(IntegerMatmul, WeightsUpToTheBoundsOfSixteenBits) {
  on_every_isa([] {
    constexpr int8_t kGroups[][4] = {{64, 64, -64, -64}, {127, 1, 1, 127}, {-128, 0, 0, -128},   {-127, -1, 127, -128},
                                     {65, 64, 0, 0},     {0, 0, -128, -1}, {127, 127, 127, 127}, {1, -2, 3, -4}};
    Random random(4);
    for (const int64_t depth : {7, 1500, 2100}) {
      constexpr int64_t kColumns = 41;
      Tensor b = Tensor::empty(DType::i8, {depth, kColumns});
      for (int64_t k = 0; k < depth; ++k) {
        // Most groups are alike in all columns: one that does not fit is enough for the others to go with it.
        for (int64_t c = 0; c < kColumns; ++c) {
          const auto kind = static_cast<size_t>(k / 4 * 5 + (k / 4 % 16 == 3 ? c : 0)) % std::size(kGroups);
          b.mutable_data<int8_t>()[k * kColumns + c] = kGroups[kind][k % 4];
        }
      }
      for (const DType dtype : {DType::u8, DType::i8}) {
        for (const double x : {0.0, 255.0}) {
          const double low = dtype == DType::i8 ? -128 : 0;
          const OpSample sample{.inputs = {draw_tensor(random, dtype, {13, depth}, low + x, low + x), b,
                                           draw_bytes(random, dtype, {}), draw_bytes(random, DType::i8, {})}};
          expect_same(sample, {.threads = 2, .constant_weights = true});
        }
      }
    }
  });
}

// The largest sums that bytes can have.
TEST(IntegerMatmul, SumsOfExtremes) {
  with_and_without_vnni([] {
    for (const double low : {0.0, 255.0}) {
      Random random(3);
      const OpSample sample{.inputs = {draw_tensor(random, DType::u8, {3, 5001}, 255 - low, 255 - low),
                                       draw_tensor(random, DType::u8, {5001, 17}, 255, 255),
                                       draw_tensor(random, DType::u8, {}, low, low),
                                       draw_tensor(random, DType::u8, {}, 0, 0)}};
      expect_same(sample, {});
    }
  });
}

}  // namespace
}  // namespace autograph
