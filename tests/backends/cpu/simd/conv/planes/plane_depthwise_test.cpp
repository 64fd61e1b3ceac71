// Depthwise convolutions of row-major planes against the reference: any windows, with known and with computed weights.
#include <gtest/gtest.h>

#include <limits>

#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

KernelDef kernel() { return cpu_kernel("cpu.depthwise_of_planes", "conv"); }

OpSample random_conv(Random& random) {
  const int64_t rank = draw(random, 1, 2), channels = draw(random, 1, 5), sharing = draw(random, 1, 2);
  Dims x{draw(random, 1, 2), channels}, w{channels * sharing, 1}, strides, dilations;
  Dims pads(static_cast<size_t>(2 * rank), 0);
  for (int64_t a = 0; a < rank; ++a) {
    w.push_back(draw(random, 1, 5));
    strides.push_back(draw(random, 1, 3));
    dilations.push_back(draw(random, 1, 3));
    for (const int64_t side : {a, a + rank}) pads[static_cast<size_t>(side)] = draw(random, 0, 6);
    const int64_t span = (w.back() - 1) * dilations.back() + 1;
    x.push_back(span + draw(random, 0, a + 1 == rank ? 70 : 6));
  }
  OpSample sample;
  sample.inputs = {draw_tensor(random, DType::f32, x), draw_tensor(random, DType::f32, w)};
  if (draw_bool(random)) sample.inputs.emplace_back(draw_tensor(random, DType::f32, {w[0]}));
  sample.attributes = {{"group", channels}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}};
  return sample;
}

TEST(PlaneDepthwise, AnyWindow) {
  Random random(31);
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    const KernelCase test(conv_def(), random_conv(random), {1 + i % 2});
    on_every_isa([&] { expect_reference(kernel(), test, {1e-5, 1e-5}); });
  }
}

TEST(PlaneDepthwise, LargePlanesOnThreeThreads) {
  Random random(32);
  for (const int64_t stride : {1, 2}) {
    const OpSample sample{
        {draw_tensor(random, DType::f32, {1, 7, 57, 113}), draw_tensor(random, DType::f32, {7, 1, 3, 3})},
        {{"group", int64_t{7}}, {"strides", Dims{stride, stride}}, {"auto_pad", std::string("SAME_UPPER")}}};
    expect_reference(kernel(), KernelCase(conv_def(), sample, {3}), {1e-5, 1e-5});
  }
}

// The padding is nothing, not zeros that make NaN of infinity.
TEST(PlaneDepthwise, InfiniteWeightsMeetNoPadding) {
  const Tensor w = Tensor::of<float>({1, 1, 3}, {std::numeric_limits<float>::infinity(), 1, 2});
  const OpSample sample{{Tensor::of<float>({1, 1, 4}, {1, 2, 3, 4}), w}, {{"group", int64_t{1}}, {"pads", Dims{1, 1}}}};
  expect_reference(kernel(), KernelCase(conv_def(), sample));
}

TEST(PlaneDepthwise, SaysWhatItRefuses) {
  Random random(33);
  const auto tensor = [&](Dims dims) { return draw_tensor(random, DType::f32, std::move(dims)); };
  const KernelCase grouped(conv_def(), {{tensor({1, 4, 5, 5}), tensor({4, 2, 3, 3})}, {{"group", int64_t{2}}}});
  EXPECT_EQ(KernelRun(kernel(), grouped).refusal(), "not depthwise");
}

}  // namespace
}  // namespace autograph
