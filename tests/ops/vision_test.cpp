#include "autograph/ops/vision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/call_op.h"
#include "ops/defs.h"

namespace autograph {
namespace {

const Tensor kRow = Tensor::of<float>({1, 1, 4}, {1, 2, 3, 4});

Tensor resized(const Tensor& x, const std::vector<float>& scales, Attributes attributes) {
  const Tensor factors = Tensor::of<float>({static_cast<int64_t>(scales.size())}, scales);
  return call_op(resize_def(), {x, Tensor(), factors}, std::move(attributes))[0];
}

TEST(Resize, NearestRepeatsElementsOfEveryDtype) {
  const Tensor words = Tensor::of<std::string>({2}, {"a", "b"});
  const Tensor y =
      resized(words, {2},
              {{"coordinate_transformation_mode", std::string("asymmetric")}, {"nearest_mode", std::string("floor")}});
  EXPECT_EQ(std::vector<std::string>(y.elements<std::string>().begin(), y.elements<std::string>().end()),
            (std::vector<std::string>{"a", "a", "b", "b"}));
}

TEST(Resize, LinearHalvesWithPixelCentres) {
  EXPECT_EQ(resized(kRow, {1, 1, 0.5F}, {{"mode", std::string("linear")}}).to_f64(), (std::vector<double>{1.5, 3.5}));
  EXPECT_EQ(resized(kRow, {1, 1, 2}, {{"mode", std::string("linear")}}).to_f64(),
            (std::vector<double>{1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4}));
}

// 4.5 * 14 / 9 and 2.5 * 22 / 5 are 7 and 11; the rounded scales 9 / 14 and 5 / 22 leave less of them.
TEST(Resize, CoordinatesOfWholeElementsAreWhole) {
  const auto element = [](int64_t in, int64_t out, int64_t at, const std::string& transform) {
    Tensor row = Tensor::zeros(DType::f32, {in});
    for (int64_t i = 0; i < in; ++i) row.mutable_data<float>()[i] = static_cast<float>(i);
    const Attributes attributes{{"coordinate_transformation_mode", transform},
                                {"nearest_mode", std::string("round_prefer_ceil")}};
    return call_op(resize_def(), {row, Tensor(), Tensor(), Tensor::vector({out})}, attributes)[0].to_f64()[at];
  };
  EXPECT_EQ(element(14, 9, 4, "half_pixel"), 7);
  EXPECT_EQ(element(22, 5, 2, "half_pixel"), 11);
}

// As ONNX's reference evaluator and other runtimes have it: 1/3 of 3 steps is 1.
TEST(Resize, RegionsBeginAtWholeElements) {
  const Tensor roi = Tensor::of<float>({6}, {0, 0, 1.0F / 3, 1, 1, 2.0F / 3});
  const auto crop = [&](const std::string& nearest_mode) {
    const Attributes attributes{{"coordinate_transformation_mode", std::string("tf_crop_and_resize")},
                                {"nearest_mode", nearest_mode}};
    return call_op(resize_def(), {kRow, roi, Tensor(), Tensor::vector({1, 1, 4})}, attributes)[0].to_f64();
  };
  EXPECT_EQ(crop("ceil"), (std::vector<double>{2, 3, 3, 4}));
  EXPECT_EQ(crop("floor"), (std::vector<double>{2, 2, 2, 3}));
}

TEST(Resize, NeedsExactlyOneOfScalesAndSizes) {
  EXPECT_THROW(call_op(resize_def(), {kRow}), ValueError);
  EXPECT_THROW(call_op(resize_def(), {kRow, Tensor(), Tensor(), Tensor::vector({1, 2})}), ValueError);
}

// The numbers of PyTorch, and of ONNX Runtime but where it converts infinity to an integer.
TEST(GridSample, CoordinatesThatAreNoNumbersAreThoseOfTheFirstElement) {
  const Tensor x = Tensor::of<float>({1, 1, 3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const Tensor grid = Tensor::of<float>({1, 1, 4, 2}, {nan, 0, 0, nan, infinity, 0, -infinity, 0.2F});
  const auto sampled = [&](const std::string& mode, const std::string& padding) {
    return call_op(grid_sample_def(), {x, grid}, {{"mode", mode}, {"padding_mode", padding}})[0].to_f64();
  };
  using Values = std::vector<double>;
  EXPECT_EQ(sampled("nearest", "border"), (Values{5, 3, 8, 5}));
  EXPECT_EQ(sampled("nearest", "reflection"), (Values{5, 3, 5, 5}));
  EXPECT_EQ(sampled("nearest", "zeros"), (Values{0, 0, 0, 0}));
  const Values linear = sampled("linear", "reflection");
  const Values expected{5, 2.5, 5, 6.2};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(linear[i], expected[i], 1e-5) << "at " << i;
  EXPECT_EQ(sampled("linear", "zeros"), (Values{0, 0, 0, 0}));
}

TEST(GridSample, ReadsCentresAndPadsWithZeros) {
  const Tensor grid = Tensor::of<float>({1, 3, 1}, {-1, 0, 3});
  const Attributes corners{{"align_corners", int64_t{1}}};
  EXPECT_EQ(call_op(grid_sample_def(), {kRow, grid}, corners)[0].to_f64(), (std::vector<double>{1, 2.5, 0}));
}

TEST(RoiAlign, AveragesTheWholeRegion) {
  const Tensor x = Tensor::of<float>({1, 1, 2, 2}, {1, 2, 3, 4});
  const Tensor rois = Tensor::of<float>({1, 4}, {0, 0, 2, 2});
  EXPECT_EQ(call_op(roi_align_def(), {x, rois, Tensor::vector({0})})[0].to_f64(), (std::vector<double>{2.5}));
  EXPECT_THROW(call_op(roi_align_def(), {x, rois, Tensor::vector({1})}), ValueError);
}

TEST(Vision, SamplesOfEveryOpRun) {
  for (const OpDef* op : {&affine_grid_def(), &grid_sample_def(), &resize_def(), &roi_align_def()}) {
    run_samples(*op, 200);
  }
}

}  // namespace
}  // namespace autograph
