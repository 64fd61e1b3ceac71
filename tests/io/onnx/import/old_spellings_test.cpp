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

TEST(OldSpellings, RangesOfOnnxRuntime) {
  using Values = std::vector<double>;
  const auto range = [](float from, float to) {
    return ContribNode("Range").input(f32({}, {from})).input(f32({}, {to}));
  };
  EXPECT_EQ(range(1, 4).result().to_f64(), (Values{1, 2, 3}));
  EXPECT_EQ(range(1, 4).constant(f32({}, {2})).result().to_f64(), (Values{1, 3}));
}

// As tf2onnx writes crop_and_resize: the iteration number, declared as [1], says where slices begin.
TEST(OldSpellings, LoopsThatDeclareTheirIterationAsAList) {
  const auto declared = [](const std::string& name, int64_t dtype, const std::string& shape) {
    return field(1, name) + field(2, field(1, field(1, dtype) + field(2, shape)));
  };
  const auto i64s = [](const std::string& name, const std::vector<int64_t>& dims, int64_t value) {
    std::string bytes;
    for (const int64_t d : dims) bytes += field(1, d);
    return field(5, bytes + field(2, 7) + field(7, value) + field(8, name));
  };
  const std::string list_of_one = field(1, field(1, 1));
  const std::string body = field(2, std::string("body")) + field(1, node("Add", {"i", "one"}, {"end"})) +
                           field(1, node("Slice", {"x", "i", "end"}, {"part"})) +
                           field(1, node("Identity", {"go"}, {"on"})) + field(11, declared("i", 7, list_of_one)) +
                           field(11, declared("go", 9, "")) + field(12, declared("on", 9, "")) +
                           field(12, declared("part", 1, list_of_one)) + i64s("one", {}, 1);
  const std::string loop =
      node("Loop", {"turns", ""}, {"parts"}, field(5, field(1, std::string("body")) + field(6, body) + field(20, 5)));
  const std::string flatten =
      node("Flatten", {"parts"}, {"y"}, field(5, field(1, std::string("axis")) + field(3, 0) + field(20, 2)));
  const Graph parsed = parse_onnx(model(graph({loop, flatten}, i64s("turns", {}, 2)))).graph;
  const std::vector<Datum> results = compile(parsed).run({f32({2}, {3, 4})});
  EXPECT_EQ(results[0].tensor().to_f64(), (std::vector<double>{3, 4}));
}

TEST(OldSpellings, ConditionsOfTheShapeOfTheInput) {
  const Tensor mask = Tensor::of<bool>({2, 2}, {true, false, false, true});
  const ContribNode compress = ContribNode("Compress", "").input(f32({2, 2}, {1, 2, 3, 4})).input(mask);
  EXPECT_EQ(compress.result().to_f64(), (std::vector<double>{1, 4}));
}

}  // namespace
}  // namespace autograph::tests
