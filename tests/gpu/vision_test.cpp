// affine_grid, grid_sample, roi_align and max_roi_pool on an OpenCL device: all modes and paddings, positions far
// outside and such as are no numbers.
#include <gtest/gtest.h>

#include <limits>

#include "autograph/builder.h"
#include "autograph/error.h"
#include "autograph/ops/vision.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "gpu/opencl_test_device.h"
#include "ops/sample.h"
#include "support/message_of.h"

namespace autograph {
namespace {

// The first positions are halves, borders and beyond; others are drawn.
Tensor draw_grid(Random& random, const Dims& dims) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<float> grid;
  for (const double v : draw_tensor(random, DType::f32, dims, -1.6, 1.6).to_f64()) {
    grid.push_back(static_cast<float>(v));
  }
  const std::vector<float> special{
      -1, 1, 0, 0.25F, -0.75F, 1.25F, -9, 9, 1e30F, kInf, -kInf, std::numeric_limits<float>::quiet_NaN(), 0.5F, -0.5F};
  std::copy(special.begin(), special.end(), grid.begin());
  return Tensor::of<float>(dims, grid);
}

TEST(OpenClVision, SamplesGridsAsTheReference) {
  AG_NEEDS_OPENCL();
  Random random(1);
  const Tensor x = draw_tensor(random, DType::f32, {2, 3, 4, 5});
  const Tensor grid = draw_grid(random, {2, 4, 6, 2});
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      const int64_t aligned = padding[0] == 'b' || mode[0] == 'c' ? 0 : 1;
      GraphBuilder graph;
      const Var image = graph.input("x", DType::f32, {2, 3, 4, 5}), at = graph.input("grid", DType::f32, {2, 4, 6, 2});
      graph.output(
          "y", grid_sample(
                   image, at,
                   {{"mode", std::string(mode)}, {"padding_mode", std::string(padding)}, {"align_corners", aligned}}));
      EXPECT_EQ(difference_on_opencl(graph.build(), {x, grid}), "") << mode << ", " << padding;
    }
  }
}

// Images and volumes, one of them with an axis of a single element, and numbers that are none.
TEST(OpenClVision, MakesGridsAsTheReference) {
  AG_NEEDS_OPENCL();
  Random random(4);
  const std::vector<std::pair<DType, std::vector<int64_t>>> sizes{
      {DType::f32, {2, 1, 3, 5}}, {DType::f64, {1, 2, 4, 1, 3}}, {DType::f16, {3, 1, 2, 7}}};
  for (const auto& [dtype, size] : sizes) {
    const auto rank = static_cast<int64_t>(size.size()) - 2;
    const Dims dims{size[0], rank, rank + 1};
    GraphBuilder graph;
    const Var theta = graph.input("theta", dtype, Shape::of(dims));
    const Var extents = graph.constant(Tensor::vector(size));
    graph.output("edges", affine_grid(theta, extents, false));
    graph.output("centres", affine_grid(theta, extents, true));
    Tensor maps = draw_tensor(random, dtype, dims);
    if (dtype == DType::f32) maps.mutable_data<float>()[7] = std::numeric_limits<float>::infinity();
    EXPECT_EQ(difference_on_opencl(graph.build(), {maps}, {1e-7, 1e-7}), "") << to_string(dtype);
  }
}

Graph regions_graph(const std::string& mode, int64_t ratio, const std::string& transformation) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {2, 3, 6, 7}), regions = graph.input("regions", DType::f32, {5, 4});
  graph.output("y", roi_align(x, regions, graph.input("images", DType::i64, {5}),
                              {{"output_height", int64_t{2}},
                               {"output_width", int64_t{3}},
                               {"sampling_ratio", ratio},
                               {"spatial_scale", 0.5F},
                               {"mode", mode},
                               {"coordinate_transformation_mode", transformation}}));
  return graph.build();
}

// Regions inside, partly outside, far outside, empty and turned round.
TEST(OpenClVision, PoolsRegionsAsTheReference) {
  AG_NEEDS_OPENCL();
  Random random(2);
  const Tensor x = draw_tensor(random, DType::f32, {2, 3, 6, 7});
  const Tensor regions =
      Tensor::of<float>({5, 4}, {1, 2, 9, 11, -8, -3, 30, 20, 90, 90, 99, 99, 3, 3, 3, 3, 9, 8, 2, 1});
  const Tensor images = Tensor::vector({0, 1, 1, 0, 1});
  EXPECT_EQ(difference_on_opencl(regions_graph("avg", 0, "half_pixel"), {x, regions, images}), "");
  EXPECT_EQ(difference_on_opencl(regions_graph("max", 2, "half_pixel"), {x, regions, images}), "");
  EXPECT_EQ(difference_on_opencl(regions_graph("max", 0, "output_half_pixel"), {x, regions, images}), "");
}

TEST(OpenClVision, TellsOfRegionsThatAreNone) {
  AG_NEEDS_OPENCL();
  const Executable there = compile(regions_graph("avg", 0, "half_pixel"), on_opencl());
  const Tensor x = Tensor::zeros(DType::f32, {2, 3, 6, 7});
  std::vector<float> corners(20, 1);
  const auto message = [&](std::initializer_list<int64_t> images) {
    return message_of<ValueError>([&] { there.run({x, Tensor::of<float>({5, 4}, corners), Tensor::vector(images)}); });
  };
  const std::string expected = "[roi_align] regions: expected images 0..1 and at most 65536 elements per bin, got ";
  EXPECT_EQ(message({0, 1, 2, 0, 0}).find(expected + "2 (in "), 0U) << message({0, 1, 2, 0, 0});
  corners[6] = 1e9F;
  EXPECT_EQ(message({0, 1, 1, 0, 0}).find(expected), 0U) << message({0, 1, 1, 0, 0});
}

Graph largest_graph(DType dtype, float scale) {
  GraphBuilder graph;
  const Var x = graph.input("x", dtype, {2, 3, 6, 7}), regions = graph.input("regions", dtype, {7, 5});
  graph.output("y", max_roi_pool(x, regions, {2, 3}, scale));
  return graph.build();
}

// Regions inside, at halves, partly and far outside, turned round, infinite, and such as are no numbers; a NaN among
// the elements counts where it is the first one.
TEST(OpenClVision, TakesTheLargestOfRegionsAsTheReference) {
  AG_NEEDS_OPENCL();
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  Random random(6);
  Tensor x = draw_tensor(random, DType::f32, {2, 3, 6, 7});
  for (const int64_t k : {0, 9, 80}) x.mutable_data<float>()[k] = kNan;
  const Tensor regions =
      Tensor::of<float>({7, 5}, {0,  1,  2, 5, 6, 1, 0.5F, -0.5F, 2.5F,  1.5F, 0.9F, -8, -3, 30,   20, 1, 90,  90,
                                 99, 99, 1, 5, 4, 2, 1,    0,     -kInf, 0,    kInf, 3,  1,  kNan, 0,  5, kNan});
  EXPECT_EQ(difference_on_opencl(largest_graph(DType::f32, 1), {x, regions}, {0, 0}), "");
  const Tensor few = draw_tensor(random, DType::bf16, {2, 3, 6, 7});
  const Tensor drawn = draw_tensor(random, DType::bf16, {7, 5}, 0, 1.9);
  EXPECT_EQ(difference_on_opencl(largest_graph(DType::bf16, 3.3F), {few, drawn}, {0, 0}), "");
}

TEST(OpenClVision, TellsOfRegionsOfNoImage) {
  AG_NEEDS_OPENCL();
  const Executable there = compile(largest_graph(DType::f32, 1), on_opencl());
  for (const float image : {2.0F, -1.0F, std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> regions(35, 1);
    regions[15] = image;
    const std::string message = message_of<ValueError>([&] {
      there.run({Tensor::zeros(DType::f32, {2, 3, 6, 7}), Tensor::of<float>({7, 5}, regions)});
    });
    EXPECT_EQ(message.find("[max_roi_pool] batch index: expected 0..1, got another one in region 3 (in "), 0U)
        << message;
  }
}

}  // namespace
}  // namespace autograph
