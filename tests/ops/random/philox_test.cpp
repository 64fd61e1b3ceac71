// Philox: the published answers, and random numbers that depend on seed, step and id alone.
#include "ops/random/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "autograph/op_def.h"
#include "autograph/ops/random.h"
#include "ops/defs.h"
#include "ops/run_op.h"

namespace autograph {
namespace {

using Words = std::array<uint32_t, 4>;

// philox4x32 with 10 rounds in the known-answer file of Random123, the authors' implementation.
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

Tensor draw(Dims dims, int64_t seed, int64_t step, int64_t id, const std::string& distribution,
            DType dtype = DType::f32) {
  Attributes attributes{{"id", id}, {"distribution", distribution}};
  if (distribution != "bits") attributes.set("dtype", dtype);
  return run_op(philox_def(), {Tensor::vector(dims), Tensor::scalar(seed), Tensor::scalar(step)}, attributes);
}

TEST(Philox, BitsAreBlocksOfTheStream) {
  const Tensor bits = draw({2, 3}, 5, 7, 9, "bits");
  const PhiloxStream stream{5, 7, 9};
  const Words first = stream.block(0);
  const Words second = stream.block(1);
  EXPECT_EQ(elements<uint32_t>(bits),
            (std::vector<uint32_t>{first[0], first[1], first[2], first[3], second[0], second[1]}));
  EXPECT_EQ(first, philox({0, 7, 0, 9}, {5, 0}));
}

TEST(Philox, SeedStepAndIdEachGiveOtherNumbers) {
  const int64_t high = int64_t{1} << 32;
  std::set<std::vector<uint32_t>> seen;
  for (const int64_t seed : {int64_t{0}, int64_t{1}, high}) {
    for (const int64_t step : {int64_t{0}, int64_t{1}, high}) {
      for (const int64_t id : {int64_t{0}, int64_t{1}, high - 1}) {
        seen.insert(elements<uint32_t>(draw({4}, seed, step, id, "bits")));
      }
    }
  }
  EXPECT_EQ(seen.size(), 27U);
}

// A longer tensor begins with the numbers of a shorter one: each element has its own counter.
TEST(Philox, ElementsDoNotDependOnTheExtents) {
  for (const std::string distribution : {"bits", "uniform", "normal"}) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      const std::vector<double> all = draw({41}, 1, 2, 3, distribution, dtype).to_f64();
      for (const int64_t count : {1, 2, 3, 5, 8, 40}) {
        const std::vector<double> some = draw({count}, 1, 2, 3, distribution, dtype).to_f64();
        EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << distribution << " " << count;
      }
    }
  }
}

TEST(Philox, MomentsMatchTheDistributions) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const std::vector<double> u = draw({20000}, 3, 0, 0, "uniform", dtype).to_f64();
    const std::vector<double> n = draw({20000}, 3, 0, 1, "normal", dtype).to_f64();
    double mean = 0;
    double mean_normal = 0;
    double square = 0;
    for (const double v : u) mean += v / 20000;
    for (const double v : n) mean_normal += v / 20000;
    for (const double v : n) square += v * v / 20000;
    // Standard errors: 0.002, 0.007 and 0.01; tolerances are five of them.
    EXPECT_NEAR(mean, 0.5, 0.01);
    EXPECT_NEAR(mean_normal, 0, 0.035);
    EXPECT_NEAR(square, 1, 0.05);
    EXPECT_GE(*std::min_element(u.begin(), u.end()), 0);
    EXPECT_LT(*std::max_element(u.begin(), u.end()), 1);
  }
}

TEST(Philox, SaysWhatDoesNotFit) {
  const std::vector<Tensor> inputs{Tensor::vector({2}), Tensor::scalar(int64_t{0}), Tensor::scalar(int64_t{0})};
  EXPECT_EQ(error_of(philox_def(), inputs, {{"id", int64_t{-1}}}), "[philox] id: expected 0 to 4294967295, got -1");
  EXPECT_EQ(error_of(philox_def(), inputs, {{"id", int64_t{0}}, {"dtype", DType::u32}}),
            "[philox] dtype: expected f32 or f64, got u32");
  EXPECT_EQ(error_of(philox_def(), inputs), "[philox] attribute 'id': required but missing");
  EXPECT_EQ(error_of(philox_def(), {Tensor::vector({-2}), inputs[1], inputs[2]}, {{"id", int64_t{0}}}),
            "[philox] shape: expected extents of 0 or more, got -2");
}

}  // namespace
}  // namespace autograph
