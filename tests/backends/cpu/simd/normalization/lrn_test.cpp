// lrn: channels and pixels that are no multiple of a vector, windows of even sizes and wider than the channels, in
// every layout, on every instruction set.
#include <gtest/gtest.h>

#include <array>

#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

Tensor draw_images(Random& random) {
  Dims dims{draw(random, 1, 2), draw_bool(random) ? 16 * draw(random, 1, 3) : draw(random, 1, 40)};
  const int64_t spatial = draw(random, 0, 3);
  for (int64_t i = 0; i < spatial; ++i) dims.push_back(draw(random, 1, 19));
  return draw_tensor(random, DType::f32, dims, -2, 2);
}

TEST(Lrn, EveryVariantOnRandomCalls) {
  Random random(7);
  const KernelDef def = cpu_kernel("cpu.lrn_simd", "lrn");
  for (int i = 0; i < 60; ++i) {
    OpSample sample{.inputs = {draw_images(random)}};
    sample.attributes = {{"size", draw(random, 1, i % 5 == 0 ? 60 : 7)}, {"alpha", 0.1F}, {"bias", 1.5F}};
    if (i % 4 != 0) sample.attributes.set("beta", std::array{0.6F, 0.5F, 1.0F}[static_cast<size_t>(i % 4 - 1)]);
    SCOPED_TRACE(testing::Message() << i << ": " << to_string(Shape::of(sample.inputs[0].tensor().dims())));
    on_every_isa([&] { expect_every_variant(def, lrn_def(), sample, 1 + i % 2); });
  }
}

TEST(Lrn, SaysWhatItRefuses) {
  Random random(1);
  const Tensor x = draw_images(random);
  const auto refusal = [&](Attributes attributes) {
    attributes.set("size", int64_t{3});
    return KernelRun(cpu_kernel("cpu.lrn_simd", "lrn"), KernelCase(lrn_def(), {{x}, attributes})).refusal();
  };
  EXPECT_EQ(refusal({{"alpha", -0.1F}}), "an alpha below 0");
  EXPECT_EQ(refusal({{"bias", 0.0F}}), "a bias that is not above 0");
}

}  // namespace
}  // namespace autograph
