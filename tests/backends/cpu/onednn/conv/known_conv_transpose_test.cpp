// Transposed convolutions whose windows lie side by side, with known weights: oneDNN's sgemm, of which the first call
// of a process makes code for all products that there are, is not called where there is another product.
#include <gtest/gtest.h>

#include <oneapi/dnnl/dnnl.hpp>

#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/every_variant.h"

namespace autograph {
namespace {

OpSample side_by_side(const Dims& x, int64_t channels) {
  Random random(10);
  Dims w{x[1], channels}, strides;
  for (size_t axis = 2; axis < x.size(); ++axis) {
    w.push_back(2);
    strides.push_back(2);
  }
  return {{draw_tensor(random, DType::f32, x, -1, 1), draw_tensor(random, DType::f32, w, -1, 1),
           draw_tensor(random, DType::f32, {channels}, -1, 1)},
          {{"strides", strides}}};
}

const KernelDef& product() {
  static const KernelDef kProduct = cpu_kernel("cpu.conv_transpose_product_onednn", "conv_transpose");
  return kProduct;
}

bool packs_weights(const OpSample& sample) {
  const KernelCase known(conv_transpose_def(), sample, {.constant_weights = true});
  return !product().prepare(known.call()).kernel->reads_input(1);
}

// An image as a whole, in slices of rows, and in parts of its channels where there are more threads.
TEST(KnownConvTranspose, PacksWeightsAnew) {
  if (dnnl::get_effective_cpu_isa() < dnnl::cpu_isa::avx512_core) GTEST_SKIP() << "oneDNN has its sgemm alone";
  for (const Dims& x : {Dims{1, 5, 4, 4}, Dims{2, 5, 40, 30}, Dims{1, 5, 70}}) {
    const OpSample sample = side_by_side(x, 64);
    SCOPED_TRACE(to_string(Shape::of(x)));
    EXPECT_TRUE(packs_weights(sample));
    for (const int threads : {1, 3}) expect_every_variant_renews(product(), conv_transpose_def(), sample, threads);
  }
}

TEST(KnownConvTranspose, IsExpectedToBeFaster) {
  if (dnnl::get_effective_cpu_isa() < dnnl::cpu_isa::avx512_core) GTEST_SKIP() << "oneDNN has its sgemm alone";
  const OpSample sample = side_by_side({1, 64, 28, 28}, 64);
  const auto us = [&](bool is_known) {
    const KernelCase test(conv_transpose_def(), sample, {.constant_weights = is_known});
    return product().variants(test.call()).front().cost_us;
  };
  EXPECT_LT(us(true), us(false));
}

TEST(KnownConvTranspose, FewProductsAndLongLinesStayWithSgemm) {
  EXPECT_FALSE(packs_weights(side_by_side({1, 5, 4, 4}, 3)));
  EXPECT_FALSE(packs_weights(side_by_side({1, 5, 3000}, 16)));
}

}  // namespace
}  // namespace autograph
