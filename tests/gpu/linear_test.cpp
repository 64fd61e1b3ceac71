// Determinants on an OpenCL device.
#include <gtest/gtest.h>

#include <limits>

#include "autograph/builder.h"
#include "autograph/ops/linear.h"
#include "autograph/random.h"
#include "gpu/opencl_test_device.h"
#include "ops/sample.h"

namespace autograph {
namespace {

Graph det_graph(DType dtype, const Dims& dims) {
  GraphBuilder graph;
  graph.output("y", det(graph.input("x", dtype, Shape::of(dims))));
  return graph.build();
}

// Small matrices that need no exchange of rows, one exchange and two, singular ones, and such as have no determinant.
TEST(OpenClLinear, FindsDeterminantsOfSmallMatrices) {
  AG_NEEDS_OPENCL();
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::of<float>(
      {9, 3, 3}, {4, 1, 2,  1,    3, 0, 2, 0, 5,    1, 2, 3, 4, 5, 6, 7, 8, 10, 1, 2, 3, 2, 4, 6, 3, 1, 2,
                  0, 1, 0,  kInf, 1, 0, 0, 1, kInf, 0, 0, 1, 0, 1, 0, 1, 0, 0,  0, 1, 2, 0, 3, 4, 0, 5, kInf,
                  1, 2, -1, kNan, 1, 0, 0, 1, 3,    0, 0, 0, 0, 0, 0, 0, 0, 0,  2, 2, 2, 2, 2, 1, 2, 1, 2});
  EXPECT_EQ(difference_on_opencl(det_graph(DType::f32, {9, 3, 3}), {x}, {1e-6, 1e-6}), "");
  Random random(1);
  EXPECT_EQ(difference_on_opencl(det_graph(DType::f64, {2, 3, 4, 4}), {draw_tensor(random, DType::f64, {2, 3, 4, 4})},
                                 {1e-12, 1e-12}),
            "");
}

// A column without a pivot, and an infinite element behind it.
TEST(OpenClLinear, FindsDeterminantsOfLargeMatrices) {
  AG_NEEDS_OPENCL();
  Random random(2);
  for (const int64_t n : {5, 37}) {
    Tensor x = draw_tensor(random, DType::f32, {3, n, n});
    float* singular = x.mutable_data<float>() + n * n;
    for (int64_t row = 0; row < n; ++row) singular[row * n + 2] = 0;
    singular[n * n - 1] = std::numeric_limits<float>::infinity();
    EXPECT_EQ(difference_on_opencl(det_graph(DType::f32, {3, n, n}), {x}), "") << n;
  }
  EXPECT_NE(difference_on_opencl(det_graph(DType::f32, {1, 64, 64}), {Tensor::zeros(DType::f32, {1, 64, 64})}), "")
      << "on the host: 32 KiB of local memory is what every device has";
}

}  // namespace
}  // namespace autograph
