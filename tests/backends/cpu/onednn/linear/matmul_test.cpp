// Which form of a product is expected to be the fastest.
#include <gtest/gtest.h>

#include <algorithm>

#include <oneapi/dnnl/dnnl.hpp>

#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

std::string cheapest_form(int64_t rows, int64_t columns, bool is_known) {
  Random random(1);
  const KernelCase test(
      matmul_def(),
      {{draw_tensor(random, DType::f32, {rows, 256}, -1, 1), draw_tensor(random, DType::f32, {256, columns}, -1, 1)}},
      {1, is_known});
  const std::vector<KernelVariant> forms = cpu_kernel("cpu.matmul_onednn", "matmul").variants(test.call());
  const auto is_cheaper = [](const KernelVariant& a, const KernelVariant& b) { return a.cost_us < b.cost_us; };
  return std::min_element(forms.begin(), forms.end(), is_cheaper)->name;
}

// Before AVX-512 the plain form packs a known matrix in each run.
TEST(MatmulForms, KnownMatricesArePackedOnce) {
  const bool has_avx512 = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core;
  for (const int64_t rows : {32, 2048}) {
    EXPECT_EQ(cheapest_form(rows, 1024, true), has_avx512 ? "" : "convolution") << rows;
    EXPECT_EQ(cheapest_form(rows, 1000, true), has_avx512 ? "" : "convolution") << rows;
    EXPECT_EQ(cheapest_form(rows, 1024, false), "") << rows;
  }
}

}  // namespace
}  // namespace autograph
