// conv_transpose and lrn against the reference, in every variant on offer.
#include <gtest/gtest.h>

#include <cstring>

#include "autograph/compile.h"
#include "backends/cpu/cpu_kernels.h"
#include "ops/op_list.h"
#include "ops/sample.h"
#include "runtime/kernel_catalog.h"
#include "support/compare.h"
#include "support/run_kernel.h"

namespace autograph {
namespace {

KernelDef kernel_named(std::string_view name) {
  for (const KernelDef& def : cpu_kernels()) {
    if (def.name == name) return def;
  }
  return {};
}

// A tensor of these dims in another layout.
Tensor reordered(const TensorView& from, const Dims& dims, Layout from_layout, Layout to_layout) {
  int64_t elements = 1;
  for (const int64_t extent : padded_dims(to_layout, dims)) elements *= extent;
  Tensor to = Tensor::empty(DType::f32, to_layout == Layout::row_major ? dims : Dims{elements});
  if (from_layout == to_layout) {
    std::memcpy(to.mutable_raw(), from.raw(), to.size_bytes());
    return to;
  }
  const Type type(DType::f32, Shape::of(dims));
  const std::unique_ptr<Kernel> kernel = cpu_reorder()({type, from_layout, to_layout, 1});
  const TensorView input(DType::f32, dims, const_cast<void*>(from.raw()));
  const TensorView output(DType::f32, dims, to.mutable_raw());
  const auto state = kernel->new_state();
  Tensor scratch = Tensor::empty(DType::u8, {static_cast<int64_t>(kernel->scratch_bytes()) + 1});
  kernel->run({{&input, 1}, {&output, 1}, scratch.mutable_raw(), state.get()});
  return to;
}

// Runs a variant with inputs brought into its layouts and the output back.
Tensor run_in_layout(const KernelDef& def, const OpDef& op, const OpSample& sample, const KernelVariant& variant,
                     int threads) {
  const KernelCase test(op, sample, {threads, true, &variant});
  const KernelCall call = test.call();
  Prepared prepared = def.prepare(call);
  EXPECT_NE(prepared.kernel, nullptr) << prepared.refusal;
  const Dims x = call.input_dims(0), y = call.output_dims(0);
  Tensor in = reordered(test.inputs()[0], x, Layout::row_major, variant.input(0));
  Tensor out = reordered(Tensor::empty(DType::f32, y).view(), y, Layout::row_major, variant.output(0));
  std::vector<TensorView> inputs(test.inputs().begin(), test.inputs().end());
  inputs[0] = TensorView(DType::f32, x, in.mutable_raw());
  const TensorView output(DType::f32, y, out.mutable_raw());
  Tensor scratch = Tensor::empty(DType::u8, {static_cast<int64_t>(prepared.kernel->scratch_bytes()) + 1});
  const auto state = prepared.kernel->new_state();
  prepared.kernel->run({inputs, {&output, 1}, scratch.mutable_raw(), state.get()});
  return reordered(output, y, variant.output(0), Layout::row_major);
}

void expect_every_variant(const KernelDef& def, const OpDef& op, const OpSample& sample, int threads) {
  const KernelCase plain(op, sample, {threads, true});
  ASSERT_EQ(def.why_not(plain.call()), "");
  const std::vector<KernelVariant> variants = def.variants(plain.call());
  EXPECT_FALSE(variants.empty());
  for (const KernelVariant& variant : variants) {
    SCOPED_TRACE(variant.name + " " + std::string(to_string(variant.input(0))));
    const Tensor actual = run_in_layout(def, op, sample, variant, threads);
    EXPECT_EQ(difference({Datum(actual)}, {Datum(plain.reference()[0])}, {1e-4, 1e-4}), "");
  }
}

TEST(ConvTranspose, EveryVariantOnRandomCalls) {
  Random random(6);
  const OpDef& op = *find_op("conv_transpose");
  const KernelDef def = kernel_named("cpu.conv_transpose_onednn");
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
  const KernelDef def = kernel_named("cpu.lrn_onednn");
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
