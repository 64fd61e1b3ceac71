// grid_sample on the CPU against the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autograph/random.h"
#include "backends/cpu/cpu_kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

void expect_reference(const OpSample& sample) {
  for (const int threads : {1, 2}) {
    const KernelCase test(grid_sample_def(), sample, {threads});
    KernelRun run(grid_sample_kernel(), test);
    ASSERT_EQ(run.refusal(), "");
    run.run();
    EXPECT_EQ(difference(Datum(run.outputs()[0]), Datum(test.reference()[0]), {1e-5, 1e-5}), "");
  }
}

TEST(GridSample, SamplesInEveryMode) {
  Random random(1);
  for (const std::string mode : {"linear", "nearest", "cubic"}) {
    for (const std::string padding : {"zeros", "border", "reflection"}) {
      for (const int64_t align : {0, 1}) {
        const Attributes attributes{{"mode", mode}, {"padding_mode", padding}, {"align_corners", align}};
        const auto sample = [&](const Dims& x, const Dims& grid) {
          expect_reference(
              {{draw_tensor(random, DType::f32, x), draw_tensor(random, DType::f32, grid, -2.0, 2.0)}, attributes});
        };
        sample({2, 9, 21, 30}, {2, 17, 23, 2});
        sample({1, 1, 1, 1}, {1, 3, 3, 2});
        sample({2, 3, 50}, {2, 65, 1});
        sample({1, 5, 6, 7, 8}, {1, 4, 5, 9, 3});
      }
    }
  }
}

TEST(GridSample, ZerosOutsideDoNotReadTheImage) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> planes;
  for (int plane = 0; plane < 5; ++plane) planes.insert(planes.end(), {infinity, 1, 2, 3});
  const Tensor x = Tensor::of<float>({1, 5, 2, 2}, planes);
  const Tensor grid = Tensor::of<float>({1, 1, 3, 2}, {9, 9, 0.5F, 0.5F, std::nanf(""), 0});
  expect_reference({{x, grid}});
}

// Points on elements, on the edges, far outside and nowhere, in images with infinities and NaN, of every width.
TEST(GridSample, SpecialPointsInSpecialImages) {
  Random random(3);
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const std::vector<float> special{0,     -0.0F,  1,        -1,        0.5F, -1.5F, 1.25F, -1.75F, 3,       1e-40F,
                                   1e10F, -3e38F, infinity, -infinity, nan,  1e20F, 2e15F, -7e15F, 0.9999F, -1.0001F};
  for (const std::string padding : {"zeros", "border", "reflection"}) {
    for (const int64_t align : {0, 1}) {
      for (const int64_t width : {1, 2, 3, 16}) {
        Tensor x = draw_tensor(random, DType::f32, {1, 3, 4, width});
        x.mutable_data<float>()[0] = infinity;
        x.mutable_data<float>()[5] = nan;
        x.mutable_data<float>()[4 * width - 1] = -infinity;
        std::vector<float> grid;
        for (const float a : special) {
          for (const float b : special) grid.insert(grid.end(), {a, b});
        }
        SCOPED_TRACE(padding + " " + std::to_string(align) + " " + std::to_string(width));
        const auto count = static_cast<int64_t>(special.size());
        const Attributes attributes{{"padding_mode", padding}, {"align_corners", align}};
        expect_reference({{x, Tensor::of<float>({1, count, count, 2}, grid)}, attributes});
      }
    }
  }
}

// Clamped to the edge, both neighbours are the same element.
TEST(GridSample, AnInfiniteEdgeIsItself) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::of<float>({1, 1, 1, 3}, {1, 2, infinity});
  const Tensor grid = Tensor::of<float>({1, 1, 1, 2}, {7, 0});
  const OpSample sample{{x, grid}, {{"padding_mode", std::string("border")}}};
  EXPECT_EQ(KernelCase(grid_sample_def(), sample).reference()[0].data<float>()[0], infinity);
  expect_reference(sample);
}

TEST(GridSample, RefusesTooManyAxes) {
  Random random(2);
  const KernelCase test(grid_sample_def(), {{draw_tensor(random, DType::f32, {1, 1, 2, 2, 2, 2}),
                                             draw_tensor(random, DType::f32, {1, 1, 1, 1, 1, 4})},
                                            {{"mode", std::string("cubic")}}});
  EXPECT_EQ(KernelRun(grid_sample_kernel(), test).refusal(), "too many axes");
}

}  // namespace
}  // namespace autograph
