// Transposes of a few long rows or columns, as pictures and their planes have them, under every instruction set.
#include <gtest/gtest.h>

#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

TEST(TransposeSimd, FewLongRowsAndColumns) {
  Random random(41);
  const KernelDef def = cpu_kernel("cpu.transpose_simd", "transpose");
  for (int i = 0; i < 120; ++i) {
    SCOPED_TRACE(i);
    Dims dims{draw(random, 1, 2), draw(random, 1, 5), draw(random, 1, 90), draw(random, 1, 60)};
    std::vector<int64_t> perm{0, 2, 3, 1};
    if (draw_bool(random)) {
      std::swap(dims[1], dims[3]);
      perm = {0, 3, 1, 2};
    }
    const DType dtype = draw_one_of(random, {DType::f32, DType::f32, DType::i32, DType::i64});
    const OpSample sample{.inputs = {draw_tensor(random, dtype, dims)}, .attributes = {{"perm", perm}}};
    on_every_isa([&] { expect_reference(def, KernelCase(transpose_def(), sample, {1 + i % 2})); });
  }
}

// As windows of pictures are taken apart: blocks of some elements, of which few lie beside each other.
TEST(TransposeSimd, SmallBlocks) {
  Random random(42);
  const KernelDef def = cpu_kernel("cpu.transpose_simd", "transpose");
  for (int i = 0; i < 120; ++i) {
    SCOPED_TRACE(i);
    const Dims dims{draw(random, 1, 5), draw(random, 1, 3), draw(random, 1, 20), draw(random, 1, 3),
                    draw_one_of<int64_t>(random, {1, 2, 3, 5, 8, 17, 70})};
    std::vector<int64_t> perm{0, 2, 1, 3, 4};
    if (draw_bool(random)) perm = {2, 0, 3, 1, 4};
    const DType dtype = draw_one_of(random, {DType::u8, DType::f16, DType::f32, DType::i64});
    const OpSample sample{.inputs = {draw_tensor(random, dtype, dims)}, .attributes = {{"perm", perm}}};
    expect_reference(def, KernelCase(transpose_def(), sample, {1 + i % 2}));
  }
}

}  // namespace
}  // namespace autograph
