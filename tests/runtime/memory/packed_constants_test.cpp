// Packed constants are made once for each form and live as long as somebody holds them.
#include "runtime/memory/packed_constants.h"

#include <gtest/gtest.h>

#include <thread>

#include "autograph/op_def.h"
#include "autograph/random.h"
#include "ops/sample.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

TEST(PackedConstants, GivesWhatIsHeldForTheSameElementsAndForm) {
  PackedConstants packed;
  const Tensor a = Tensor::vector({1, 2}), b = Tensor::vector({1, 2});
  int made = 0;
  const auto make = [&] { return ++made; };
  const auto first = PackedConstants::share(&packed, {a}, "f", make);
  EXPECT_EQ(PackedConstants::share(&packed, {a}, "f", make), first);
  EXPECT_EQ(*PackedConstants::share(&packed, {a}, "g", make), 2) << "another form";
  EXPECT_EQ(*PackedConstants::share(&packed, {b}, "f", make), 3) << "another buffer";
  EXPECT_EQ(*PackedConstants::share(&packed, {a.reshaped({2, 1})}, "f", make), 4) << "other extents";
  EXPECT_EQ(*PackedConstants::share(nullptr, {a}, "f", make), 5) << "nothing is shared";
  EXPECT_EQ(packed.num_held(), 1U);
}

TEST(PackedConstants, FormsThatNobodyHoldsAreMadeAgain) {
  PackedConstants packed;
  const Tensor a = Tensor::vector({1});
  for (int i = 0; i < 1000; ++i) {
    // The next tensor may lie where this one lay.
    const Tensor other = Tensor::vector({i});
    const auto held = PackedConstants::share(&packed, {other}, "f", [&] { return other.to_i64()[0]; });
    ASSERT_EQ(*held, i);
  }
  EXPECT_EQ(packed.num_held(), 0U);
}

TEST(PackedConstants, KeepsTheConstantsWhoseAddressesItKnows) {
  PackedConstants packed;
  const auto owner = std::make_shared<int>(0);
  std::shared_ptr<const int> held;
  {
    const Tensor given = Tensor::wrap(DType::i32, {1}, owner.get(), owner);
    held = PackedConstants::share(&packed, {given}, "f", [] { return 1; });
  }
  EXPECT_EQ(owner.use_count(), 2);
  held.reset();
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(PackedConstants, ThreadsAgreeOnOne) {
  PackedConstants packed;
  const Tensor a = Tensor::vector({1});
  std::vector<std::shared_ptr<const int>> got(4);
  std::vector<std::thread> threads;
  for (auto& mine : got) {
    threads.emplace_back([&] { mine = PackedConstants::share(&packed, {a}, "f", [] { return 7; }); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : got) EXPECT_EQ(mine, got[0]);
}

TEST(PackedConstants, WhatNobodyElseHoldsIsTakenBack) {
  PackedConstants packed;
  const Tensor a = Tensor::scalar(1.0F);
  const auto make = [&] { return PackedConstants::share(&packed, {a}, "f", [] { return 7; }); };
  std::shared_ptr<const int> first = make(), second = make();
  EXPECT_EQ(PackedConstants::take_back(&packed, std::move(first)), 0) << "somebody else holds it";
  EXPECT_EQ(make(), second);
  EXPECT_EQ(PackedConstants::take_back(&packed, std::move(second)), 7);
  EXPECT_EQ(packed.num_held(), 0U);
  make();
  EXPECT_EQ(packed.num_made(), 2U) << "the old one is not found";
}

// The kernel for a call whose weights are known, in its last variant, which packs them; `keep` keeps what it refers to.
std::unique_ptr<Kernel> prepared(const KernelDef& def, const OpSample& sample, PackedConstants& packed,
                                 std::vector<std::shared_ptr<KernelCase>>& keep) {
  const OpDef& op = get_op(def.op);
  KernelVariant variant;
  if (def.variants) variant = def.variants(KernelCase(op, sample, {1, true}).call()).back();
  keep.push_back(std::make_shared<KernelCase>(op, sample, KernelSetup{1, true, &variant}));
  KernelCall call = keep.back()->call();
  EXPECT_EQ(def.why_not(call), "");
  call.packed = &packed;
  return def.prepare(call).kernel;
}

// For all these shapes of x the weights are packed once.
void expect_shared(std::string_view kernel, std::string_view op, const std::vector<Dims>& shapes, OpSample sample) {
  SCOPED_TRACE(kernel);
  const KernelDef def = cpu_kernel(kernel, op);
  if (def.name.empty()) return;  // not in this build
  Random random(6);
  PackedConstants packed;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<std::shared_ptr<KernelCase>> keep;
  size_t num_held = 0;
  sample.inputs.insert(sample.inputs.begin(), Tensor());
  for (const Dims& x : shapes) {
    sample.inputs[0] = draw_tensor(random, DType::f32, x, -1, 1);
    kernels.push_back(prepared(def, sample, packed, keep));
    ASSERT_NE(kernels.back(), nullptr);
    if (num_held == 0) num_held = packed.num_held();
    EXPECT_EQ(packed.num_held(), num_held);
  }
  EXPECT_GE(num_held, 1U);
}

TEST(PackedConstants, KernelsForSeveralShapesShareWeights) {
  Random random(5);
  const auto drawn = [&](Dims dims) { return draw_tensor(random, DType::f32, std::move(dims), -1, 1); };
  const std::vector<int64_t> ones{1, 1, 1, 1};
  const std::vector<Dims> images{{1, 32, 20, 20}, {2, 32, 24, 28}, {1, 32, 9, 31}};
  OpSample conv{.inputs = {drawn({32, 32, 3, 3})}, .attributes = {{"pads", ones}}};
  expect_shared("cpu.conv_onednn", "conv", images, conv);
  expect_shared("cpu.winograd_conv_simd", "conv", images, conv);
  conv.attributes.set("dilations", std::vector<int64_t>{2, 2});
  expect_shared("cpu.tap_conv_simd", "conv", images, conv);
  OpSample depthwise{.inputs = {drawn({32, 1, 3, 3})}, .attributes = {{"pads", ones}, {"group", int64_t{32}}}};
  expect_shared("cpu.grouped_conv_simd", "conv", images, depthwise);
  OpSample lstm{.inputs = {drawn({1, 64, 8}), drawn({1, 64, 16})}, .attributes = {{"hidden_size", int64_t{16}}}};
  expect_shared("cpu.lstm_simd", "lstm", {{5, 1, 8}, {9, 3, 8}}, lstm);
}

}  // namespace
}  // namespace autograph
