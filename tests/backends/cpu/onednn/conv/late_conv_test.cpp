// Convolutions for which code is made when their shape has come back: until then a few pixels at a time are computed by
// code that all shapes share, to the same bits.
#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "autograph/random.h"
#include "backends/cpu/onednn/late_primitive.h"
#include "backends/cpu/onednn/onednn_ops.h"
#include "runtime/memory/packed_constants.h"
#include "support/kernels/conv_epilogue.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

constexpr int64_t kIn = 24, kOut = 40;
constexpr size_t kResidual = 3;

// What slides over the images.
struct Window {
  int64_t side = 1, stride = 1;
};

// Calls of several shapes with the same weights.
class Shapes {
 public:
  explicit Shapes(const Window& window) : window_(window) {
    for (const Dims& dims : {Dims{kOut, kIn, window.side, window.side}, Dims{kOut}}) {
      weights_.emplace_back(draw_tensor(random_, DType::f32, dims, -1, 1));
    }
  }

  OpSample sample(const Dims& x, int64_t epilogue) {
    OpSample conv;
    conv.inputs = {draw_tensor(random_, DType::f32, x, -1, 1), weights_[0], weights_[1]};
    conv.attributes = {{"pads", Dims(4, window_.side / 2)}, {"strides", Dims(2, window_.stride)}};
    return with_epilogue(random_, conv, epilogue);
  }

 private:
  Window window_;
  Random random_{41};
  std::vector<Datum> weights_;
};

std::vector<KernelVariant> channels_last_variants(const KernelDef& def, const KernelCall& call) {
  std::vector<KernelVariant> variants = def.variants(call);
  std::erase_if(variants, [](const KernelVariant& v) { return v.input(0) != Layout::channels_last; });
  return variants;
}

size_t scratch_bytes(const KernelDef& def, const KernelCase& of) {
  return def.prepare(of.call()).kernel->scratch_bytes();
}

// Each of some runs gives what one alone gives.
void expect_equal(const KernelDef& def, const KernelCase& alone, KernelRun& actual) {
  KernelRun expected(def, alone);
  expected.run();
  for (int run = 0; run < onednn::LatePrimitive::kRunsBefore + 2; ++run) {
    actual.run();
    EXPECT_TRUE(actual.outputs()[0].bitwise_equal(expected.outputs()[0])) << "run " << run;
  }
}

// How many variants compute a few pixels at a time for a shape that is not the first one of its weights; nothing where
// the kernel does not take the epilogue.
std::optional<int> expect_equal_runs(const Dims& x, int64_t epilogue, int threads, const Window& window = {}) {
  const KernelDef def = onednn::fused_conv_kernel();
  Shapes shapes(window);
  const OpSample first = shapes.sample({1, kIn, 6, 50}, epilogue), second = shapes.sample(x, epilogue),
                 third = shapes.sample({x[0], x[1], x[2], x[3] + 1}, epilogue);
  const KernelSetup known{.threads = threads, .constant_weights = true, .first_unknown = kResidual};
  const KernelCase of_any(fused_def(), second, known);
  if (!def.why_not(of_any.call()).empty()) return std::nullopt;
  int late = 0;
  for (const KernelVariant& variant : channels_last_variants(def, of_any.call())) {
    SCOPED_TRACE(variant.name);
    PackedConstants packed;
    KernelSetup alone = known;
    alone.variant = &variant;
    KernelSetup among_shapes = alone;
    among_shapes.packed = &packed;
    const KernelCase of_first(fused_def(), first, among_shapes), of_second(fused_def(), second, among_shapes),
        of_third(fused_def(), third, among_shapes);
    const KernelCase of_one(fused_def(), second, alone), of_other(fused_def(), third, alone);
    const KernelRun holds_weights(def, of_first);
    KernelRun actual(def, of_second);
    expect_equal(def, of_one, actual);
    const bool is_late = scratch_bytes(def, of_second) > scratch_bytes(def, of_one);
    late += is_late ? 1 : 0;
    // What was made for the second serves the third.
    const size_t made = packed.num_made();
    KernelRun another(def, of_third);
    if (is_late) {
      EXPECT_EQ(packed.num_made(), made);
    }
    expect_equal(def, of_other, another);
  }
  return late;
}

TEST(LateConv, EveryRunGivesTheSameBits) {
  int taken = 0;
  // A part of one tile, tiles and a part of one, tiles alone; batches.
  for (const Dims& x : {Dims{1, kIn, 1, 28}, Dims{1, kIn, 5, 7}, Dims{2, kIn, 9, 15}, Dims{1, kIn, 8, 32}}) {
    for (int64_t epilogue = 0; epilogue < kNumEpilogues; ++epilogue) {
      SCOPED_TRACE(to_string(Shape::of(x)) + " epilogue " + std::to_string(epilogue));
      for (const int threads : {1, 3}) {
        const std::optional<int> late = expect_equal_runs(x, epilogue, threads);
        if (!late) continue;
        taken += *late > 0 ? 1 : 0;
      }
    }
  }
  // Below AVX2 oneDNN has products alone.
  const bool has_code = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx2;
  EXPECT_GT(taken, has_code ? 4 * 2 * kNumEpilogues / 2 : -1);
}

// With a residual, which is another for each pixel, most get code of their own.
TEST(LateConv, WindowsGiveTheSameBitsInEveryRun) {
  constexpr int64_t kRelu = 1;
  int taken = 0, cases = 0;
  // One tile, tiles that are moved back from beyond the end; batches.
  for (const Dims& x : {Dims{1, kIn, 8, 16}, Dims{1, kIn, 9, 21}, Dims{2, kIn, 13, 17}}) {
    for (const Window& window : {Window{3, 1}, Window{5, 1}, Window{3, 2}}) {
      for (const int64_t epilogue : {kRelu, int64_t{0}, int64_t{3}}) {
        SCOPED_TRACE(to_string(Shape::of(x)) + " window " + std::to_string(window.side) + " stride " +
                     std::to_string(window.stride) + " epilogue " + std::to_string(epilogue));
        for (const int threads : {1, 3}) {
          const int late = expect_equal_runs(x, epilogue, threads, window).value_or(0);
          cases += epilogue == kRelu ? 1 : 0;
          taken += epilogue == kRelu && late > 0 ? 1 : 0;
        }
      }
    }
  }
  const bool has_code = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx2;
  EXPECT_EQ(taken, has_code ? cases : 0);
}

TEST(LateConv, InfiniteWeightsOfWindowsMeetNoZerosOfThePadding) {
  const KernelDef def = onednn::fused_conv_kernel();
  Random random(7);
  Tensor weights = draw_tensor(random, DType::f32, {kOut, kIn, 3, 3}, -1, 1);
  weights.mutable_data<float>()[0] = std::numeric_limits<float>::infinity();
  const auto sample = [&](const Dims& x) {
    OpSample conv;
    conv.inputs = {draw_tensor(random, DType::f32, x, 1, 2), weights};
    conv.attributes = {{"pads", Dims(4, 1)}};
    return with_epilogue(random, conv, 1);
  };
  PackedConstants packed;
  const OpSample first = sample({1, kIn, 6, 50}), second = sample({1, kIn, 9, 21});
  KernelSetup known{.constant_weights = true};
  for (const KernelVariant& variant : channels_last_variants(def, KernelCase(fused_def(), first, known).call())) {
    known.variant = &variant;
    KernelSetup among_shapes = known;
    among_shapes.packed = &packed;
    const KernelCase alone(fused_def(), second, known), of_first(fused_def(), first, among_shapes),
        of_second(fused_def(), second, among_shapes);
    const KernelRun holds_weights(def, of_first);
    KernelRun actual(def, of_second);
    expect_equal(def, alone, actual);
  }
}

TEST(LateConv, FewPixelsGetCodeOfTheirOwn) { EXPECT_EQ(expect_equal_runs({1, kIn, 3, 5}, 0, 1), 0); }

TEST(LatePrimitive, IsMadeOnceWhenItHasBeenAskedForAFewTimes) {
  int made = 0;
  onednn::LatePrimitive late([&] {
    ++made;
    return dnnl::primitive();
  });
  for (int run = 0; run < onednn::LatePrimitive::kRunsBefore; ++run) EXPECT_EQ(late.get(), nullptr);
  const onednn::TeamPrimitive* primitive = late.get();
  EXPECT_NE(primitive, nullptr);
  EXPECT_EQ(late.get(), primitive);
  EXPECT_EQ(made, 1);
}

TEST(LatePrimitive, StaysAwayWhereOneDnnHasNone) {
  int asked = 0;
  onednn::LatePrimitive late([&]() -> dnnl::primitive {
    ++asked;
    throw dnnl::error(dnnl_unimplemented, "none");
  });
  for (int run = 0; run < onednn::LatePrimitive::kRunsBefore + 3; ++run) EXPECT_EQ(late.get(), nullptr);
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace autograph
