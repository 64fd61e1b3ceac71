// conv_transpose and lrn against the reference, in every variant on offer.
#include <gtest/gtest.h>

#include "ops/op_list.h"
#include "ops/sample.h"
#include "support/every_variant.h"

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

TEST(Lrn, EveryVariantOnRandomCalls) {
  Random random(7);
  const KernelDef def = cpu_kernel("cpu.lrn_onednn", "lrn");
  if (def.name.empty()) GTEST_SKIP() << "a build without oneDNN";
  for (int i = 0; i < 20; ++i) {
    OpSample sample;
    sample.inputs = {draw_tensor(random, DType::f32, {draw(random, 1, 2), draw(random, 1, 40), 5, 7}, -2, 2)};
    sample.attributes = {{"size", 1 + 2 * draw(random, 0, 3)}, {"alpha", 0.1F}, {"bias", 1.5F}};
    if (draw_bool(random)) sample.attributes.set("beta", 0.6F);
    SCOPED_TRACE(i);
    expect_every_variant(def, *find_op("lrn"), sample, 1 + i % 2);
  }
}

}  // namespace
}  // namespace autograph
