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

}  // namespace
}  // namespace autograph
