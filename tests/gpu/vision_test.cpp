// grid_sample on an OpenCL device: all modes and paddings, positions far outside and such as are no numbers.
#include <gtest/gtest.h>

#include <limits>

#include "autograph/builder.h"
#include "autograph/ops/vision.h"
#include "autograph/random.h"
#include "gpu/opencl_test_device.h"
#include "ops/sample.h"

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

}  // namespace
}  // namespace autograph
