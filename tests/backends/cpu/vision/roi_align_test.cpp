// roi_align by rows and columns against the reference: regions that reach out of the image, or have no extent, grids
// that are given and that follow from the region.
#include <gtest/gtest.h>

#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/kernels/every_variant.h"

namespace autograph {
namespace {

OpSample random_call(Random& random) {
  const int64_t images = draw(random, 1, 3), channels = draw(random, 1, 40), regions = draw(random, 1, 30);
  const Dims x{images, channels, draw(random, 1, 24), draw(random, 1, 24)};
  Tensor rois = draw_tensor(random, DType::f32, {regions, 4}, -8, 60);
  Attributes attributes{{"output_height", draw(random, 1, 7)},
                        {"output_width", draw(random, 1, 7)},
                        {"sampling_ratio", draw(random, 0, 3)},
                        {"spatial_scale", draw_bool(random) ? 0.5F : 1.0F}};
  const auto mode = draw_one_of<std::string>(random, {"half_pixel", "output_half_pixel"});
  attributes.set("coordinate_transformation_mode", mode);
  return {.inputs = {draw_tensor(random, DType::f32, x, -1, 1), rois,
                     draw_tensor(random, DType::i64, {regions}, 0, static_cast<double>(images - 1))},
          .attributes = attributes};
}

TEST(RoiAlign, AgreesWithTheReferenceOnRandomCalls) {
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    const KernelCase test(roi_align_def(), random_call(random), {.threads = 1 + i % 3});
    KernelRun run(cpu_kernel("cpu.roi_align", "roi_align"), test);
    ASSERT_EQ(run.refusal(), "");
    run.run();
    const std::vector<Tensor> expected = test.reference();
    ASSERT_EQ(
        difference({run.outputs().begin(), run.outputs().end()}, {expected.begin(), expected.end()}, {1e-5, 1e-5}), "")
        << "call " << i;
  }
}

TEST(RoiAlign, RefusesAnImageThatIsNotThere) {
  Random random(2);
  OpSample sample = random_call(random);
  const int64_t regions = sample.inputs[1].tensor().dims()[0];
  sample.inputs[2] = Tensor::of<int64_t>({regions}, std::vector<int64_t>(static_cast<size_t>(regions), 7));
  const KernelCase test(roi_align_def(), sample);
  KernelRun run(cpu_kernel("cpu.roi_align", "roi_align"), test);
  EXPECT_THROW(run.run(), ValueError);
}

}  // namespace
}  // namespace autograph
