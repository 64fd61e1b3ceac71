// resize with mode linear and cubic on the CPU against the reference.
#include <gtest/gtest.h>

#include "autograph/random.h"
#include "backends/cpu/cpu_kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

std::string refusal_or_difference(const OpSample& sample, int threads) {
  const KernelCase test(resize_def(), sample, {threads, true});
  KernelRun run(resize_kernel(), test);
  if (!run.refusal().empty()) return run.refusal();
  run.run();
  return difference(Datum(run.outputs()[0]), Datum(test.reference()[0]), {1e-5, 1e-5});
}

void expect_reference(const OpSample& sample) {
  for (const int threads : {1, 2, 3}) EXPECT_EQ(refusal_or_difference(sample, threads), "");
}

const std::string kTransforms[]{"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                "asymmetric"};

TEST(Resize, GrowsAndShrinksEveryAxis) {
  Random random(1);
  const Tensor x = draw_tensor(random, DType::f32, {2, 5, 33, 31});
  for (const std::string mode : {"linear", "cubic"}) {
    for (const std::string& transform : kTransforms) {
      const Attributes attributes{{"mode", mode}, {"coordinate_transformation_mode", transform}};
      for (const std::vector<float>& scales : std::vector<std::vector<float>>{
               {1, 1, 2, 2}, {1, 1, 1.7F, 0.4F}, {1, 1, 0.3F, 3}, {1, 2, 1, 3}, {2, 0.7F, 1.3F, 1}, {1, 1, 1, 1}}) {
        expect_reference({{x, Datum(), Tensor::of<float>({4}, scales)}, attributes});
      }
      expect_reference({{x, Datum(), Datum(), Tensor::vector({2, 5, 101, 77})}, attributes});
    }
  }
}

TEST(Resize, EveryLayout) {
  Random random(6);
  int with_blocks = 0;
  for (int i = 0; i < 60; ++i) {
    const std::string mode = draw_one_of<std::string>(random, {"linear", "cubic", "nearest"});
    const int64_t channels = draw_one_of(random, {int64_t{3}, int64_t{16}, int64_t{48}});
    Dims dims{draw(random, 1, 2), channels};
    std::vector<float> scales{1, draw(random, 0, 3) == 0 ? 1.5F : 1.0F};
    for (int64_t a = draw(random, 1, mode == "cubic" ? 2 : 3); a > 0; --a) {
      dims.push_back(draw(random, 2, 12));
      scales.push_back(draw_one_of(random, {0.6F, 1.0F, 2.0F, 2.4F}));
    }
    const Attributes attributes{{"mode", mode}, {"coordinate_transformation_mode", kTransforms[i % 5]}};
    const OpSample sample{{draw_tensor(random, DType::f32, dims), Datum(),
                           Tensor::of<float>({static_cast<int64_t>(scales.size())}, scales)},
                          attributes};
    const KernelDef def = mode == "nearest" ? cpu_kernel("cpu.resize_nearest", "resize") : resize_kernel();
    SCOPED_TRACE(i);
    expect_every_variant(def, resize_def(), sample, 1 + i % 2, {1e-5, 1e-5});
    with_blocks += channels > 3 && scales[1] == 1 ? 1 : 0;
    EXPECT_EQ(def.variants(KernelCase(resize_def(), sample, {1, true}).call()).size(),
              channels > 3 && scales[1] == 1 ? 4u : 2u);
  }
  EXPECT_GT(with_blocks, 10);
}

TEST(Resize, StretchesTheFilter) {
  Random random(2);
  for (const Dims& dims : std::vector<Dims>{{1, 1, 70, 91}, {1, 64, 49, 3}, {301}}) {
    const Tensor x = draw_tensor(random, DType::f32, dims);
    for (const std::string mode : {"linear", "cubic"}) {
      for (const int64_t exclude : {0, 1}) {
        const Attributes attributes{{"mode", mode}, {"antialias", int64_t{1}}, {"exclude_outside", exclude}};
        std::vector<float> scales(dims.size(), 1.0F);
        scales[dims.size() / 2] = 0.21F;
        scales.back() = 0.37F;
        expect_reference({{x, Datum(), Tensor::of<float>({static_cast<int64_t>(dims.size())}, scales)}, attributes});
      }
    }
  }
}

TEST(Resize, ExtrapolatesOutsideOfTheRegion) {
  Random random(3);
  const Tensor x = draw_tensor(random, DType::f32, {2, 9, 33, 31});
  const Tensor roi = Tensor::of<float>({8}, {0, 0, -0.5F, 0.2F, 1, 1, 0.7F, 1.4F});
  for (const std::string mode : {"linear", "cubic"}) {
    const Attributes attributes{{"mode", mode},
                                {"coordinate_transformation_mode", std::string("tf_crop_and_resize")},
                                {"extrapolation_value", -7.5F}};
    expect_reference({{x, roi, Datum(), Tensor::vector({2, 9, 60, 70})}, attributes});
    expect_reference({{x, roi, Datum(), Tensor::vector({2, 9, 11, 70})}, attributes});
  }
}

TEST(Resize, TakesRandomSamples) {
  Random random(4);
  int taken = 0;
  for (int i = 0; i < 600; ++i) {
    const OpSample sample = resize_def().sample(random);
    if (sample.attributes.text("mode") == "nearest") continue;
    const std::string text = refusal_or_difference(sample, 1 + i % 2);
    EXPECT_TRUE(text.empty() || text == "a tensor without elements") << text;
    taken += text.empty();
  }
  EXPECT_GT(taken, 100);
}

TEST(Resize, RefusesWhatItCannotDo) {
  Random random(5);
  const Attributes linear{{"mode", std::string("linear")}};
  const Tensor sizes = Tensor::vector({8, 9});
  const OpSample halves{{draw_tensor(random, DType::f16, {4, 5}), Datum(), Datum(), sizes}, linear};
  EXPECT_EQ(refusal_or_difference(halves, 1), "an input of another dtype than f32");
  const OpSample nearest{{draw_tensor(random, DType::f32, {4, 5}), Datum(), Datum(), sizes}};
  EXPECT_EQ(refusal_or_difference(nearest, 1), "mode nearest");
}

}  // namespace
}  // namespace autograph
