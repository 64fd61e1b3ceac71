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
