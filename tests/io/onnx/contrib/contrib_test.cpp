// Contrib ops on floats but attention: small exact cases, and formulas in double.
#include <cmath>

#include "io/contrib_node.h"
#include "ops/sample.h"

namespace autograph::tests {
namespace {

using Numbers = std::vector<double>;

double gelu(double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }

double fast_gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

double silu(double x, double alpha = 1) { return x / (1 + std::exp(-alpha * x)); }

// Numbers that ONNX Runtime gives.
TEST(Contrib, MurmurHashesOfBytes) {
  const auto hashes = [](const Tensor& x) { return ContribNode("MurmurHash3").input(x).result().to_f64(); };
  EXPECT_EQ(hashes(Tensor::of<std::string>({4}, {"", "a", "hello", "Graph the"})),
            (Numbers{0, 1009084850, 613153351, 3009686681}));
  EXPECT_EQ(hashes(Tensor::of<int32_t>({3}, {0, 3, 7})), (Numbers{593689054, 847579505, 1343918321}));
  EXPECT_EQ(hashes(Tensor::vector({0, 3, -3})), (Numbers{1669671676, 2738575283, 2497518509}));
  EXPECT_EQ(hashes(f32({2}, {3, 7})), (Numbers{6814352, 1570402213}));
  EXPECT_EQ(hashes(Tensor::of<double>({2}, {3, 7})), (Numbers{3554953595, 785381853}));
  const ContribNode signed_hash = ContribNode("MurmurHash3").input(Tensor::of<int32_t>({1}, {-3})).set("positive", 0);
  EXPECT_EQ(signed_hash.result().to_f64(), (Numbers{1917716652}));
  const Tensor foo = Tensor::of<std::string>({1}, {"foo"});
  EXPECT_EQ(ContribNode("MurmurHash3").input(foo).set("positive", 0).result().to_f64(), (Numbers{-156908512}));
  EXPECT_EQ(ContribNode("MurmurHash3").input(foo).set("seed", 42).result().to_f64(), (Numbers{2972666014}));
}

// ---- Activations -----------------------------------------------------------------------------------------------

TEST(Contrib, GeluInItsForms) {
  const Tensor x = f32({1, 1, 2}, {-1, 2});
  expect_near(ContribNode("Gelu").input(x).result(), {gelu(-1), gelu(2)});
  expect_near(ContribNode("FastGelu").input(x).result(), {fast_gelu(-1), fast_gelu(2)});
  expect_near(ContribNode("FastGelu").input(x).constant(f32({2}, {1, -1})).result(), {fast_gelu(0), fast_gelu(1)});
  expect_near(ContribNode("QuickGelu").input(x).result(), {silu(-1, 1.702), silu(2, 1.702)});
  expect_near(ContribNode("QuickGelu").input(x).set("alpha", 0.5F).result(), {silu(-1, 0.5), silu(2, 0.5)});
  expect_near(ContribNode("BiasGelu").input(x).constant(f32({2}, {2, -1})).result(), {gelu(1), gelu(1)});
  expect_near(ContribNode("BiasSplitGelu").input(x).constant(f32({2}, {2, 1})).result(), {1 * gelu(3)});
  expect_near(ContribNode("BiasAdd").input(x).constant(f32({2}, {1, 2})).input(x).result(), {-1, 6});
}

// ---- Products --------------------------------------------------------------------------------------------------

TEST(Contrib, FusedConvAddsBeforeTheActivation) {
  const auto node = [] {
    return ContribNode("FusedConv")
        .input(f32({1, 1, 1, 2}, {1, 2}))
        .constant(f32({1, 1, 1, 1}, {3}))
        .constant(f32({1}, {-4}))
        .input(f32({1, 1, 1, 2}, {-5, 6}));
  };
  expect_near(node().set("activation", std::string("Relu")).result(), {0, 8});
  expect_near(
      node().set("activation", std::string("LeakyRelu")).set("activation_params", std::vector<float>{0.5F}).result(),
      {-3, 8});
  expect_near(
      node().set("activation", std::string("Clip")).set("activation_params", std::vector<float>{-1, 7}).result(),
      {-1, 7});
  expect_near(node()
                  .set("activation", std::string("HardSigmoid"))
                  .set("activation_params", std::vector<float>{0.1F, 0.5F})
                  .result(),
              {0, 1});
  expect_near(node().result(), {-6, 8});
}

TEST(Contrib, ConvWithChannelsLast) {
  const auto node = [](const char* op, const char* domain) {
    return ContribNode(op, domain).input(f32({1, 1, 2, 2}, {1, 2, 3, 4})).constant(f32({1, 2, 1, 1}, {10, 1}));
  };
  expect_near(node("NhwcConv", "com.microsoft").result(), {12, 34});
  expect_near(node("Conv", "com.ms.internal.nhwc").result(), {12, 34});
  expect_near(node("NhwcFusedConv", "com.microsoft")
                  .skip()
                  .input(f32({1, 1, 2, 1}, {-20, 1}))
                  .set("activation", std::string("Relu"))
                  .result(),
              {0, 35});
}

TEST(Contrib, FusedMatMulTransposesAndScales) {
  const Tensor a = f32({2, 1}, {1, 2});
  const Tensor b = f32({3, 2}, {1, 2, 3, 4, 5, 6});
  expect_near(
      ContribNode("FusedMatMul").input(a).constant(b).set("transA", 1).set("transB", 1).set("alpha", 0.5F).result(),
      {2.5, 5.5, 8.5});
  expect_near(ContribNode("TransposeMatMul").input(a).constant(b).set("transA", 1).set("transB", 1).result(),
              {5, 11, 17});
}

TEST(Contrib, FusedMatMulMovesTheBatchBehindTheRows) {
  // A [rows 2, batch 2, 1] and B [batch 2, 1, 1].
  const ContribNode node = ContribNode("FusedMatMul")
                               .input(f32({2, 2, 1}, {1, 2, 3, 4}))
                               .input(f32({2, 1, 1}, {10, 100}))
                               .set("transBatchA", 1);
  const Tensor y = node.result();
  EXPECT_EQ(y.dims(), (Dims{2, 2, 1}));
  expect_near(y, {10, 30, 200, 400});
}

TEST(Contrib, FusedGemm) {
  const auto node = [] {
    return ContribNode("FusedGemm")
        .input(f32({1, 2}, {1, 2}))
        .constant(f32({2, 1}, {3, -4}))
        .constant(f32({1}, {1}))
        .set("alpha", 2.0F)
        .set("beta", 3.0F);
  };
  expect_near(node().set("activation", std::string("Relu")).result(), {0});
  expect_near(node().set("activation", std::string("LeakyRelu")).set("activation_alpha", 0.5F).result(), {-3.5});
}

// ---- Normalizations --------------------------------------------------------------------------------------------

Numbers layer_norm(const Numbers& x, const Numbers& scale, const Numbers& bias, double epsilon, bool centered = true) {
  const size_t size = scale.size();
  Numbers y;
  for (size_t row = 0; row < x.size() / size; ++row) {
    double mean = 0, squares = 0;
    for (size_t i = 0; i < size && centered; ++i) mean += x[row * size + i] / static_cast<double>(size);
    for (size_t i = 0; i < size; ++i) squares += std::pow(x[row * size + i] - mean, 2) / static_cast<double>(size);
    for (size_t i = 0; i < size; ++i) {
      y.push_back((x[row * size + i] - mean) / std::sqrt(squares + epsilon) * scale[i] + (bias.empty() ? 0 : bias[i]));
    }
  }
  return y;
}

TEST(Contrib, SkipLayerNormalizationWithItsSum) {
  const auto node = [](Tensor skip) {
    return ContribNode("SkipLayerNormalization")
        .input(f32({2, 1, 2}, {1, 2, 3, 5}))
        .input(std::move(skip))
        .constant(f32({2}, {2, 3}))
        .constant(f32({2}, {1, -1}))
        .constant(f32({2}, {10, 20}))
        .set("epsilon", 0.5F)
        .outputs({true, false, false, true});
  };
  const Numbers sum{11, 22, 13, 25};
  for (const Dims& dims : {Dims{2, 1, 2}, Dims{1, 1, 2}, Dims{1, 2}}) {
    const std::vector<Tensor> results = node(Tensor::zeros(DType::f32, dims)).run();
    expect_near(results[0], layer_norm(sum, {2, 3}, {1, -1}, 0.5));
    expect_near(results[1], sum);
  }
}

TEST(Contrib, SimplifiedNormalizations) {
  const Tensor x = f32({1, 2, 2}, {1, 2, -3, 5});
  const Tensor scale = f32({2}, {2, 3});
  for (const char* domain : {"", "com.microsoft"}) {
    const std::vector<Tensor> results = ContribNode("SimplifiedLayerNormalization", domain)
                                            .input(x)
                                            .constant(scale)
                                            .set("epsilon", 0.5F)
                                            .outputs({true, true})
                                            .run();
    expect_near(results[0], layer_norm({1, 2, -3, 5}, {2, 3}, {}, 0.5, false));
    expect_near(results[1], {1 / std::sqrt(3.0), 1 / std::sqrt(17.5)});
  }
  const std::vector<Tensor> skipped = ContribNode("SkipSimplifiedLayerNormalization")
                                          .input(x)
                                          .input(x)
                                          .constant(scale)
                                          .constant(f32({2}, {1, 1}))
                                          .set("epsilon", 0.5F)
                                          .outputs({true, false, false, true})
                                          .run();
  expect_near(skipped[0], layer_norm({3, 5, -5, 11}, {2, 3}, {}, 0.5, false));
  expect_near(skipped[1], {3, 5, -5, 11});
}

TEST(Contrib, LayerNormalizationBeforeItsOpset) {
  expect_near(ContribNode("LayerNormalization", "").input(f32({1, 2}, {1, 2})).constant(f32({2}, {1, 1})).result(),
              layer_norm({1, 2}, {1, 1}, {}, 1e-5));
}

TEST(Contrib, EmbedLayerNormalizationAddsThreeTables) {
  const auto node = [] {
    return ContribNode("EmbedLayerNormalization")
        .input(i32({1, 2}, {1, 0}))
        .input(i32({1, 2}, {0, 1}))
        .constant(f32({2, 2}, {1, 2, 3, 4}))
        .constant(f32({3, 2}, {10, 20, 30, 45, 0, 7}))
        .constant(f32({2, 2}, {0, 100, 0, 203}))
        .constant(f32({2}, {1, 1}))
        .constant(f32({2}, {0, 0}))
        .input(i32({1, 2}, {1, 0}))
        .outputs({true, true, true})
        .set("epsilon", 0.5F);
  };
  const Numbers sum{3 + 10 + 0, 4 + 20 + 100, 1 + 30 + 0, 2 + 45 + 203};
  const std::vector<Tensor> results = node().run();
  expect_near(results[0], layer_norm(sum, {1, 1}, {0, 0}, 0.5));
  EXPECT_EQ(results[1].to_i64(), (std::vector<int64_t>{1}));
  expect_near(results[2], sum);
  const std::vector<Tensor> placed = node().input(i32({1, 2}, {2, 2})).run();
  expect_near(placed[2], {3 + 0 + 0, 4 + 7 + 100, 1 + 0 + 0, 2 + 7 + 203});
}

TEST(Contrib, GroupNormWithChannelsLast) {
  // Two groups of one channel, two pixels.
  const Tensor x = f32({1, 2, 1, 2}, {1, 10, 3, 30});
  const ContribNode node = ContribNode("GroupNorm")
                               .input(x)
                               .constant(f32({2}, {2, 1}))
                               .constant(f32({2}, {0, 1}))
                               .set("groups", 2)
                               .set("activation", 1)
                               .set("epsilon", 0.0F);
  expect_near(node.result(), {silu(-2), silu(0), silu(2), silu(2)});
  const std::vector<Tensor> skipped = ContribNode("SkipGroupNorm")
                                          .input(x)
                                          .constant(f32({2}, {2, 1}))
                                          .constant(f32({2}, {0, 1}))
                                          .input(f32({1, 2}, {100, 200}))
                                          .set("groups", 2)
                                          .set("activation", 0)
                                          .set("epsilon", 0.0F)
                                          .outputs({true, true})
                                          .run();
  expect_near(skipped[0], {-2, 0, 2, 2}, 1e-4);
  expect_near(skipped[1], {101, 210, 103, 230});
}

// ---- What is refused -------------------------------------------------------------------------------------------

std::string refusal_of(const ContribNode& node) {
  try {
    parse_onnx(node.bytes());
  } catch (const UnsupportedError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Contrib, RefusesByNameWhatItDoesNotHave) {
  const Tensor x = f32({1, 2, 6}, std::vector<float>(12, 1));
  const Tensor w = f32({6, 18}, std::vector<float>(108, 1));
  EXPECT_EQ(refusal_of(ContribNode("Attention").input(x).constant(w).set("num_heads", 1).set("do_rotary", 1)),
            "[Attention] attribute 'do_rotary': 1 is not supported (node \"Attention_0\")");
  EXPECT_EQ(refusal_of(ContribNode("FusedGemm")
                           .input(f32({1, 1}, {1}))
                           .constant(f32({1, 1}, {1}))
                           .set("activation", std::string("Swirl"))),
            "[FusedGemm] attribute 'activation': 'Swirl' is not supported (node \"FusedGemm_0\")");
  EXPECT_EQ(
      refusal_of(ContribNode("SkipSimplifiedLayerNormalization")
                     .input(x)
                     .input(x)
                     .constant(f32({6}, std::vector<float>(6, 1)))
                     .outputs({true, true})),
      "[onnx] com.microsoft::SkipSimplifiedLayerNormalization node \"SkipSimplifiedLayerNormalization_0\": output "
      "'y1' is not supported");
}

// Whatever a file says, it ends in an error that blames the file.
TEST(Contrib, TakesNoHarmFromHostileFiles) {
  const Tensor scalar = f32(1.0F);
  const Tensor x = f32({1, 1, 1, 4}, {1, 2, 3, 4});
  const auto fails = [](const ContribNode& node) {
    try {
      parse_onnx(node.bytes());
    } catch (const UnsupportedError&) {
      return true;
    } catch (const UserError&) {
      return true;
    }
    return false;
  };
  EXPECT_TRUE(fails(ContribNode("MultiHeadAttention").input(scalar).input(scalar).input(scalar).set("num_heads", 1)));
  EXPECT_TRUE(fails(ContribNode("Attention").input(scalar).constant(f32({1, 3}, {1, 2, 3})).set("num_heads", 1)));
  EXPECT_TRUE(fails(ContribNode("NhwcConv").input(f32({1}, {1})).constant(f32({1, 1, 1}, {1}))));
  EXPECT_TRUE(fails(ContribNode("MatMulNBits")
                        .input(f32({1, 1}, {1}))
                        .constant(u8({1, 1, 8}, std::vector<uint8_t>(8)))
                        .constant(f32({1}, {1}))
                        .set("N", 1)
                        .set("K", -1)
                        .set("block_size", 16)));
  EXPECT_TRUE(fails(ContribNode("QLinearAveragePool")
                        .input(u8({1, 1, 4}, {1, 2, 3, 4}))
                        .constant(scalar)
                        .constant(u8(0))
                        .constant(scalar)
                        .constant(u8(0))
                        .set("kernel_shape", std::vector<int64_t>{2})
                        .set("strides", std::vector<int64_t>{0})
                        .set("ceil_mode", 1)
                        .set("count_include_pad", 1)));
  EXPECT_TRUE(fails(ContribNode("RotaryEmbedding").input(scalar).input(i64({1}, {0})).constant(x).constant(x)));
}

TEST(Contrib, ChecksTheSchema) {
  const auto error_of = [](const ContribNode& node) -> std::string {
    try {
      parse_onnx(node.bytes());
    } catch (const FormatError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(error_of(ContribNode("QuickGelu").input(f32({1}, {1})).set("beta", 1.0F)),
            "[QuickGelu] attribute 'beta': unknown (node \"QuickGelu_0\")");
  EXPECT_EQ(error_of(ContribNode("QLinearSigmoid").input(u8({1}, {1}))).substr(0, 16), "[QLinearSigmoid]");
}

}  // namespace
}  // namespace autograph::tests
