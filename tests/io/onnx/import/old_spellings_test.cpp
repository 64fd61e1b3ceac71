// Spellings that a later opset took back and that exporters go on writing; with the numbers that ONNX Runtime gives.
#include "autograph/error.h"
#include "io/contrib_node.h"

namespace autograph::tests {
namespace {

ContribNode resize_like_tensorflow(const std::string& mode, const std::string& nearest_mode, int64_t size) {
  return ContribNode("Resize", "")
      .input(f32({1, 1, 6}, {1, 2, 3, 4, 5, 6}))
      .skip()
      .skip()
      .constant(Tensor::vector({1, 1, size}))
      .set("mode", mode)
      .set("nearest_mode", nearest_mode)
      .set("coordinate_transformation_mode", std::string("tf_half_pixel_for_nn"));
}

TEST(OldSpellings, NearestPixelsOfTensorFlow) {
  using Values = std::vector<double>;
  EXPECT_EQ(resize_like_tensorflow("nearest", "floor", 4).result().to_f64(), (Values{1, 3, 4, 6}));
  EXPECT_EQ(resize_like_tensorflow("nearest", "floor", 9).result().to_f64(), (Values{1, 2, 2, 3, 4, 4, 5, 6, 6}));
  EXPECT_EQ(resize_like_tensorflow("nearest", "round_prefer_floor", 4).result().to_f64(), (Values{2, 3, 5, 6}));
  EXPECT_THROW(resize_like_tensorflow("nearest", "ceil", 4).result(), Error);
  EXPECT_THROW(resize_like_tensorflow("linear", "floor", 4).result(), Error);
}

}  // namespace
}  // namespace autograph::tests
