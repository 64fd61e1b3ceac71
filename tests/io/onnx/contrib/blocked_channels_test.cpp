// com.microsoft.nchwc: convolutions whose weights lie in blocks of channels.
#include "autograph/builder.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "io/contrib_node.h"
#include "ops/sample.h"

namespace autograph::tests {
namespace {

constexpr const char* kDomain = "com.microsoft.nchwc";

std::string integer(const std::string& name, int64_t value) {
  return field(5, field(1, name) + field(3, value) + field(20, int64_t{2}));
}

std::string pads_of_one() {
  return field(5, field(1, std::string("pads")) + field(8, int64_t{1}) + field(8, int64_t{1}) + field(8, int64_t{1}) +
                      field(8, int64_t{1}) + field(20, int64_t{7}));
}

std::string blocked_node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                         const std::string& attributes = "") {
  return field(1, node(op, inputs, {output}, field(7, std::string(kDomain)) + attributes));
}

std::string initializer(const std::string& name, const Tensor& tensor) {
  return field(5, tests::tensor(name, tensor.dims(),
                                field(9, std::string(static_cast<const char*>(tensor.raw()), tensor.size_bytes()))));
}

std::string file(const std::string& content, const Dims& x) {
  const auto opset = [](const std::string& domain, int64_t version) {
    return field(8, field(1, domain) + field(2, version));
  };
  return field(1, 8) + opset("", 17) + opset(kDomain, 1) +
         field(7, field(2, std::string("g")) + content + field(11, value_info("x", x)) +
                      field(12, field(1, std::string("y"))));
}

// Weights [outputs, inputs, 3, 3] with zeros up to whole blocks, written block by block.
Tensor in_blocks(const Tensor& plain, int64_t block, bool inputs_are_blocked) {
  const int64_t outputs = plain.dims()[0], inputs = plain.dims()[1], window = 9;
  const auto padded = [&](int64_t count) { return (count + block - 1) / block * block; };
  const int64_t all_outputs = padded(outputs), all_inputs = inputs_are_blocked ? padded(inputs) : inputs;
  const int64_t inner = inputs_are_blocked ? block : 1;
  std::vector<float> values;
  for (int64_t ob = 0; ob < all_outputs; ob += block) {
    for (int64_t ib = 0; ib < all_inputs; ib += inner) {
      for (int64_t k = 0; k < window; ++k) {
        for (int64_t i = ib; i < ib + inner; ++i) {
          for (int64_t o = ob; o < ob + block; ++o) {
            const bool is_there = o < outputs && i < inputs;
            values.push_back(is_there ? plain.data<float>()[(o * inputs + i) * window + k] : 0.0F);
          }
        }
      }
    }
  }
  return Tensor::of<float>({all_outputs, all_inputs, 3, 3}, values);
}

Datum run(Graph graph, const Tensor& x) { return compile(std::move(graph)).run({x}).front(); }

// conv(conv(x)) with 3 and then `channels` channels, then depthwise with a sum; the last two in blocks on both sides.
TEST(ContribBlocked, ConvolutionsAreThoseOfThePlainWeights) {
  for (const int64_t block : {8, 16}) {
    // 24 channels fill blocks of 8 and not of 16, and 20 are rounded up to 24 or 32.
    const int64_t channels = block == 8 ? 24 : 20;
    const int64_t padded = block == 8 ? 24 : 32;
    Random random(11);
    const Tensor x = draw_tensor(random, DType::f32, {1, 3, 5, 6}, -1, 1);
    const Tensor w0 = draw_tensor(random, DType::f32, {channels, 3, 3, 3}, -1, 1);
    const Tensor w1 = draw_tensor(random, DType::f32, {channels, channels, 3, 3}, -1, 1);
    const Tensor w2 = draw_tensor(random, DType::f32, {channels, 1, 3, 3}, -1, 1);
    const std::string relu =
        field(5, field(1, std::string("activation")) + field(4, std::string("Relu")) + field(20, int64_t{3}));
    const std::string bytes =
        file(blocked_node("Conv", {"x", "w0"}, "a", pads_of_one()) +
                 blocked_node("Conv", {"a", "w1"}, "b", pads_of_one() + relu) +
                 blocked_node("Conv", {"b", "w2", "", "a"}, "c", pads_of_one() + integer("group", padded)) +
                 blocked_node("ReorderOutput", {"c"}, "y", integer("channels", channels)) +
                 initializer("w0", in_blocks(w0, block, false)) + initializer("w1", in_blocks(w1, block, true)) +
                 initializer("w2", in_blocks(w2, block, false)),
             x.dims());
    Graph graph;
    const ConvOptions pads{.pads = {1, 1, 1, 1}};
    const auto weights = [&](const Tensor& w) { return autograph::constant(graph, w); };
    const Var a = conv(autograph::input(graph, DType::f32, {1, 3, 5, 6}, "x"), weights(w0), {}, pads);
    const Var b = clip(conv(a, weights(w1), {}, pads), autograph::constant(graph, Tensor::scalar(0.0F)), {});
    graph.add_output(add(conv(b, weights(w2), {}, {.pads = {1, 1, 1, 1}, .group = channels}), a).id(), "y");
    const Model loaded = parse_onnx(bytes);
    EXPECT_TRUE(loaded.warnings.empty());
    EXPECT_EQ(difference(run(loaded.graph, x), run(std::move(graph), x), {1e-4, 1e-4}), "") << block;
  }
}

TEST(ContribBlocked, TensorsAreReorderedFromChannelsLastAndBack) {
  const Tensor x = Tensor::of<float>({1, 1, 1, 2}, {5, 7});
  Tensor w = Tensor::zeros(DType::f32, {24, 24, 1, 1});
  // Output 1 is 10 times input 0, in the first block.
  w.mutable_data<float>()[0 * 8 + 1] = 10;
  const std::string bytes =
      file(blocked_node("ReorderInput", {"x"}, "a", integer("channels_last", 1)) +
               blocked_node("MaxPool", {"a"}, "b",
                            field(5, field(1, std::string("kernel_shape")) + field(8, int64_t{1}) +
                                         field(8, int64_t{1}) + field(20, int64_t{7}))) +
               blocked_node("ReorderOutput", {"b"}, "y", integer("channels", 2) + integer("channels_last", 1)) +
               blocked_node("Conv", {"x24", "w"}, "unused") + initializer("w", w) +
               initializer("x24", Tensor::zeros(DType::f32, {1, 24, 1, 1})),
           x.dims());
  const Datum y = run(parse_onnx(bytes).graph, x);
  EXPECT_EQ(difference(y, Datum(x)), "");
}

TEST(ContribBlocked, AsksWhereItCannotTellTheBlocks) {
  Random random(5);
  const Tensor w = draw_tensor(random, DType::f32, {16, 16, 3, 3}, -1, 1);
  const Tensor x = draw_tensor(random, DType::f32, {1, 16, 3, 3}, -1, 1);
  Graph plain;
  plain.add_output(
      conv(autograph::input(plain, DType::f32, Shape::of(x.dims()), "x"), autograph::constant(plain, w)).id(), "y");
  for (const int64_t block : {8, 16}) {
    const std::string bytes =
        file(blocked_node("Conv", {"x", "w"}, "y") + initializer("w", in_blocks(w, block, true)), x.dims());
    EXPECT_THROW(parse_onnx(bytes), UnsupportedError);
    const LoadOptions told{.channel_block = block};
    EXPECT_EQ(difference(run(parse_onnx(bytes, "", told).graph, x), run(plain, x), {1e-4, 1e-4}), "") << block;
  }
  // 24 channels are no blocks of 16.
  const std::string bytes =
      file(blocked_node("Conv", {"x", "w"}, "y") + initializer("w", Tensor::zeros(DType::f32, {24, 24, 3, 3})),
           {1, 24, 3, 3});
  for (const int64_t block : {4, 16}) EXPECT_THROW(parse_onnx(bytes, "", {.channel_block = block}), ValueError);
}

}  // namespace
}  // namespace autograph::tests
