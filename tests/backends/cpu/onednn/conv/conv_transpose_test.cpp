// conv_transpose against the reference, in every variant there is.
#include <gtest/gtest.h>

#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/every_variant.h"

namespace autograph {
namespace {

TEST(ConvTranspose, EveryVariantOnRandomCalls) {
  Random random(6);
  const OpDef& op = *find_op("conv_transpose");
  const KernelDef def = cpu_kernel("cpu.conv_transpose_onednn", "conv_transpose");
  if (def.name.empty()) GTEST_SKIP() << "a build without oneDNN";
  for (int i = 0; i < 60; ++i) {
    const int64_t rank = draw(random, 1, 3), group = draw_one_of(random, {int64_t{1}, int64_t{1}, int64_t{2}});
    Dims x{draw(random, 1, 2), group * draw(random, 1, 20)}, w{x[1], draw(random, 1, 20)};
    Dims strides, dilations, pads(static_cast<size_t>(2 * rank), 0), output_padding;
    for (int64_t axis = 0; axis < rank; ++axis) {
      w.push_back(draw(random, 1, 4));
      x.push_back(draw(random, 3, 7));
      strides.push_back(draw(random, 1, 3));
      dilations.push_back(draw(random, 1, 2));
      for (const int64_t side : {axis, axis + rank}) pads[static_cast<size_t>(side)] = draw(random, 0, w.back() - 1);
      output_padding.push_back(draw(random, 0, strides.back() - 1));
    }
    OpSample sample;
    sample.inputs = {draw_tensor(random, DType::f32, x, -1, 1), draw_tensor(random, DType::f32, w, -1, 1)};
    if (draw_bool(random)) sample.inputs.emplace_back(draw_tensor(random, DType::f32, {group * w[1]}, -1, 1));
    sample.attributes = {{"group", group}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}};
    sample.attributes.set("output_padding", output_padding);
    SCOPED_TRACE(i);
    expect_every_variant(def, op, sample, 1 + i % 2);
  }
}

TEST(ConvTransposeProduct, WindowsSideBySide) {
  Random random(8);
  const OpDef& op = *find_op("conv_transpose");
  const KernelDef def = cpu_kernel("cpu.conv_transpose_product_onednn", "conv_transpose");
  if (def.name.empty()) GTEST_SKIP() << "a build without oneDNN";
  for (int i = 0; i < 60; ++i) {
    const bool is_large = i % 20 == 0;  // more rows than are multiplied at a time
    Dims x{draw(random, 1, 2), draw(random, 1, 20)}, w{x[1], is_large ? 33 : draw(random, 1, 20)}, strides;
    for (int64_t axis = draw(random, 1, 2); axis > 0; --axis) {
      w.push_back(draw(random, 1, 4));
      x.push_back(is_large ? draw(random, 90, 120) : draw(random, 1, 9));
      strides.push_back(w.back());
    }
    OpSample sample;
    sample.inputs = {draw_tensor(random, DType::f32, x, -1, 1), draw_tensor(random, DType::f32, w, -1, 1)};
    if (draw_bool(random)) sample.inputs.emplace_back(draw_tensor(random, DType::f32, {w[1]}, -1, 1));
    sample.attributes = {{"strides", strides}};
    SCOPED_TRACE(i);
    expect_every_variant(def, op, sample, 1 + i % 4);
    const KernelCase unknown(op, sample, {.threads = 1 + i % 4});
    KernelRun run(def, unknown);
    run.run();
    const std::vector<Tensor> expected = unknown.reference();
    EXPECT_EQ(difference(Datum(run.outputs()[0]), Datum(expected[0]), {1e-4, 1e-4}), "");
  }
}

TEST(ConvTransposeProduct, SaysWhatItRefuses) {
  Random random(9);
  const KernelDef def = cpu_kernel("cpu.conv_transpose_product_onednn", "conv_transpose");
  if (def.name.empty()) GTEST_SKIP() << "a build without oneDNN";
  const auto refusal = [&](Attributes attributes) {
    const OpSample sample{
        {draw_tensor(random, DType::f32, {1, 4, 5, 5}), draw_tensor(random, DType::f32, {4, 3, 2, 2})},
        std::move(attributes)};
    return KernelRun(def, KernelCase(*find_op("conv_transpose"), sample)).refusal();
  };
  EXPECT_EQ(refusal({{"strides", Dims{2, 2}}, {"group", int64_t{2}}}), "groups");
  EXPECT_EQ(refusal({{"strides", Dims{1, 1}}}), "windows that do not lie side by side");
  EXPECT_EQ(refusal({{"strides", Dims{2, 2}}, {"output_padding", Dims{1, 1}}}), "windows that do not lie side by side");
  EXPECT_EQ(refusal({{"strides", Dims{2, 2}}, {"pads", Dims{0, 0, 1, 1}}}), "windows that do not lie side by side");
}

}  // namespace
}  // namespace autograph
