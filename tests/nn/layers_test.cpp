// Layers against loops over their formulas, and gradients against differences.
#include <gtest/gtest.h>

#include <cmath>

#include "autograph/compile.h"
#include "autograph/eager.h"
#include "autograph/error.h"
#include "autograph/nn/layers.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/reduction.h"
#include "nn/module_check.h"
#include "support/compare.h"
#include "support/message_of.h"

namespace autograph::nn {
namespace {

std::vector<double> values(const Module& module, const std::string& path) {
  return module.tensor(path).value().to_f64();
}

std::string slope_error_of(Module& module, const Tensor& x) {
  return slope_error(module, {x}, [&](const std::vector<Var>& in) { return std::vector<Var>{module(in[0])}; });
}

TEST(Layers, Linear) {
  Linear linear(3, 2);
  const std::vector<double> w = values(linear, "weight"), b = values(linear, "bias");
  for (const Dims& dims : {Dims{4, 3}, Dims{2, 2, 3}}) {
    const Tensor x = drawn(dims, 1);
    const std::vector<double> in = x.to_f64(), out = evaluate(linear, x).to_f64();
    for (size_t n = 0; n < 4; ++n) {
      for (size_t o = 0; o < 2; ++o) {
        double sum = b[o];
        for (size_t k = 0; k < 3; ++k) sum += in[3 * n + k] * w[3 * o + k];
        EXPECT_NEAR(out[2 * n + o], sum, 1e-5);
      }
    }
    EXPECT_EQ(slope_error_of(linear, x), "");
  }
  EXPECT_EQ(Linear(3, 2, false).parameters().size(), 1U);
}

// y[n, o, i, j] of a grouped, strided, dilated, padded convolution.
double conv_at(const Tensor& x, const Tensor& w, const std::vector<double>& b, int64_t n, int64_t o, int64_t i,
               int64_t j) {
  constexpr int64_t kStride = 2, kPadding = 2, kDilation = 2, kGroups = 2;
  const int64_t in_group = w.dims()[1], out_group = w.dims()[0] / kGroups, group = o / out_group;
  double sum = b[static_cast<size_t>(o)];
  for (int64_t c = 0; c < in_group; ++c) {
    for (int64_t u = 0; u < 3; ++u) {
      for (int64_t v = 0; v < 3; ++v) {
        const int64_t row = i * kStride - kPadding + u * kDilation, column = j * kStride - kPadding + v * kDilation;
        if (row < 0 || column < 0 || row >= x.dims()[2] || column >= x.dims()[3]) continue;
        const int64_t at = ((n * x.dims()[1] + group * in_group + c) * x.dims()[2] + row) * x.dims()[3] + column;
        sum += double{x.data<float>()[at]} * double{w.data<float>()[((o * in_group + c) * 3 + u) * 3 + v]};
      }
    }
  }
  return sum;
}

TEST(Layers, Convolution) {
  Conv2d conv(4, 6, {3}, {.stride = {2}, .padding = {2}, .dilation = {2}, .groups = 2});
  EXPECT_EQ(conv.tensor("weight").dims(), (Dims{6, 2, 3, 3}));
  const Tensor x = drawn({2, 4, 7, 8}, 2), y = evaluate(conv, x);
  ASSERT_EQ(y.dims(), (Dims{2, 6, 4, 4}));
  const std::vector<double> bias = values(conv, "bias");
  for (int64_t at = 0; at < y.num_elements(); ++at) {
    const int64_t j = at % 4, i = at / 4 % 4, o = at / 16 % 6, n = at / 96;
    ASSERT_NEAR(y.data<float>()[at], conv_at(x, conv.tensor("weight").value(), bias, n, o, i, j), 1e-5) << at;
  }
  EXPECT_EQ(slope_error_of(conv, x), "");
}

TEST(Layers, ConvolutionsOfEveryRank) {
  Conv1d line(2, 3, {3}, {.padding = {1}});
  EXPECT_EQ(evaluate(line, drawn({1, 2, 5}, 1)).dims(), (Dims{1, 3, 5}));
  Conv3d volume(2, 3, {1, 2, 3});
  EXPECT_EQ(evaluate(volume, drawn({1, 2, 4, 4, 4}, 1)).dims(), (Dims{1, 3, 4, 3, 2}));
  EXPECT_EQ(slope_error_of(volume, drawn({1, 2, 4, 4, 4}, 1)), "");
  ConvTranspose up(3, 4, {2, 2}, {.stride = {2}, .groups = 1});
  EXPECT_EQ(up.tensor("weight").dims(), (Dims{3, 4, 2, 2}));
  EXPECT_EQ(evaluate(up, drawn({1, 3, 5, 5}, 1)).dims(), (Dims{1, 4, 10, 10}));
  EXPECT_EQ(slope_error_of(up, drawn({1, 3, 5, 5}, 1)), "");
  EXPECT_EQ(message_of<ValueError>([] { Conv2d(3, 4, {3}, {.groups = 2}); }),
            "[nn] groups: expected a divisor of the channels (3), got 2");
  EXPECT_EQ(message_of<ValueError>([] { Conv2d(3, 4, {3, 3, 3}); }), "[nn] kernel: expected 1 number or 2, got 3");
}

TEST(Layers, Pools) {
  const Tensor x = Tensor::of<float>({1, 1, 2, 4}, {1, 5, 2, 0, 3, -1, 4, 8});
  MaxPool largest({2});
  EXPECT_EQ(evaluate(largest, x).to_f64(), (std::vector<double>{5, 8}));
  AvgPool mean({2}, {.padding = {1}});
  // Padding counts, as in torch: a corner has one element and three zeros.
  EXPECT_EQ(evaluate(mean, x).to_f64(), (std::vector<double>{0.25, 1.75, 0, 0.75, 0.75, 2}));
  GlobalAvgPool all;
  EXPECT_EQ(evaluate(all, x).to_f64(), (std::vector<double>{22.0 / 8}));
  EXPECT_NE(message_of<ShapeError>([&] {
              evaluate(largest, drawn({2, 2}, 1));
            }).find("rank 3 or more"),
            std::string::npos);
}

// (x - mean) / sqrt(variance + epsilon) over groups of `count` neighbouring elements.
std::vector<double> normalised(const Tensor& x, size_t count, double epsilon, bool centred = true) {
  std::vector<double> v = x.to_f64();
  for (size_t begin = 0; begin < v.size(); begin += count) {
    double mean = 0, square = 0;
    for (size_t i = begin; i < begin + count && centred; ++i) mean += v[i] / static_cast<double>(count);
    for (size_t i = begin; i < begin + count; ++i) square += (v[i] - mean) * (v[i] - mean) / static_cast<double>(count);
    for (size_t i = begin; i < begin + count; ++i) v[i] = (v[i] - mean) / std::sqrt(square + epsilon);
  }
  return v;
}

void expect_near(const Tensor& actual, const std::vector<double>& expected) {
  const std::vector<double> elements = actual.to_f64();
  ASSERT_EQ(elements.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(elements[i], expected[i], 1e-4) << i;
}

TEST(Layers, NormsOfSamples) {
  const Tensor x = drawn({2, 4, 3, 5}, 4);
  LayerNorm layer({3, 5});
  expect_near(evaluate(layer, x), normalised(x, 15, 1e-5));
  RmsNorm rms({5}, 0.1);
  expect_near(evaluate(rms, x), normalised(x, 5, 0.1, false));
  GroupNorm group(2, 4);
  expect_near(evaluate(group, x), normalised(x, 30, 1e-5));
  InstanceNorm instance(4);
  expect_near(evaluate(instance, x), normalised(x, 15, 1e-5));
  EXPECT_TRUE(instance.parameters().empty());
  EXPECT_EQ(slope_error_of(layer, x), "");
  EXPECT_EQ(slope_error_of(rms, x), "");
  EXPECT_EQ(slope_error_of(group, x), "");
}

TEST(Layers, BatchNormFollowsItsBatches) {
  BatchNorm norm(1, {.epsilon = 0, .momentum = 0.25});
  GraphBuilder graph;
  graph.output("y", norm(graph.input("x", DType::f32, {4, 1})));
  const Executable program = compile(graph.build());
  // Mean 3; sum of squares about it 20: 5 as a population, 20 / 3 as a sample.
  const Outputs out = program.run({Tensor::of<float>({4, 1}, {0, 2, 4, 6})});
  EXPECT_NEAR(out[0].tensor().to_f64()[0], -3 / std::sqrt(5), 1e-5);
  EXPECT_NEAR(program.states().get("running_mean").to_f64()[0], 0.25 * 3, 1e-5);
  EXPECT_NEAR(program.states().get("running_var").to_f64()[0], 0.75 + 0.25 * 20 / 3, 1e-5);
  EXPECT_EQ(program.states().get("num_batches_tracked").to_i64()[0], 1);

  norm.read_from(program.states());
  norm.eval();
  const double mean = 0.75, deviation = std::sqrt(0.75 + 0.25 * 20 / 3);
  EXPECT_NEAR(evaluate(norm, Tensor::of<float>({1, 1}, {2})).to_f64()[0], (2 - mean) / deviation, 1e-5);
}

TEST(Layers, Embedding) {
  Embedding table(5, 3);
  const Tensor y = evaluate(table, Tensor::of<int64_t>({2, 2}, {4, 0, 1, 4}));
  ASSERT_EQ(y.dims(), (Dims{2, 2, 3}));
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(y.data<float>()[i], table.tensor("weight").value().data<float>()[4 * 3 + i]);
    EXPECT_EQ(y.data<float>()[9 + i], y.data<float>()[i]);
  }
  EXPECT_EQ(slope_error_of(table, Tensor::of<int64_t>({2, 2}, {4, 0, 1, 4})), "");
}

// As torch's padding_idx: the row begins with zeros, is read as it is, and gets no gradient.
TEST(Layers, EmbeddingWithPadding) {
  for (const int64_t padding : {4, -1}) {
    Embedding table(5, 3, padding);
    Parameter& weight = *table.parameters()[0];
    EXPECT_EQ(values(table, "weight")[12], 0);
    EXPECT_NE(values(table, "weight")[0], 0);
    weight.set_value(Tensor::of<float>({5, 3}, std::vector<float>(15, 2)));
    const Var y = table(eager(Tensor::of<int64_t>({2, 2}, {4, 0, 1, 4})));
    EXPECT_EQ(elements(y).to_f64(), std::vector<double>(12, 2));
    backward(reduce_sum(y * y, {}, false));
    EXPECT_EQ(elements(gradient(weight.beside(y))).to_f64(),
              (std::vector<double>{4, 4, 4, 4, 4, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  }
  EXPECT_EQ(message_of<ValueError>([] { Embedding(5, 3, 5); }),
            "[nn] embedding: expected a padding index of -5 to 4, got 5");
}

TEST(Layers, DropoutDropsWhileTraining) {
  const Tensor ones = Tensor::of<float>({100, 100}, std::vector<float>(10000, 1));
  struct Twice : Module {
    Dropout& a = add<Dropout>("a", 0.25);
    Dropout& b = add<Dropout>("b", 0.25);
  } module;
  module.set_seed(3);
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {100, 100});
  graph.output("a", module.a(x));
  graph.output("b", module.b(x));
  const Executable program = compile(graph.build());
  const Outputs first = program.run({ones}), second = program.run({ones});
  double sum = 0;
  for (const double v : first[0].tensor().to_f64()) {
    ASSERT_TRUE(v == 0 || std::fabs(v - 4.0 / 3) < 1e-6) << v;
    sum += v;
  }
  EXPECT_NEAR(sum / 10000, 1, 0.03);
  EXPECT_FALSE(first[0].tensor().bitwise_equal(first[1].tensor()));
  EXPECT_FALSE(first[0].tensor().bitwise_equal(second[0].tensor()));
  // Another program that begins at the same step drops the same.
  EXPECT_TRUE(compile(graph.build()).run({ones})[0].tensor().bitwise_equal(first[0].tensor()));
  module.eval();
  EXPECT_TRUE(evaluate(module.a, ones).bitwise_equal(ones));
  EXPECT_EQ(message_of<ValueError>([] { Dropout(1.0); }), "[nn] dropout: expected 0 <= ratio < 1, got 1");
}

// All elements of a sample, or of a channel, go together.
TEST(Layers, DropoutOfChannelsAndSamples) {
  const Tensor ones = Tensor::of<float>({40, 5, 2, 3}, std::vector<float>(1200, 1));
  ChannelDropout channels(0.25);
  DropPath samples(0.25);
  for (const auto& [module, together] : {std::pair<Module*, size_t>{&channels, 6}, {&samples, 30}}) {
    const std::vector<double> y = evaluate(*module, ones).to_f64();
    size_t dropped = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i], y[i - i % together]) << i;
      ASSERT_TRUE(y[i] == 0 || std::fabs(y[i] - 4.0 / 3) < 1e-6) << y[i];
      dropped += y[i] == 0 ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(dropped) / 1200, 0.25, 0.2);
    EXPECT_GT(dropped, 0U);
    module->eval();
    EXPECT_TRUE(evaluate(*module, ones).bitwise_equal(ones));
  }
}

// Numbers of torch.
TEST(Layers, AlphaDropout) {
  AlphaDropout elements(0.25);
  ChannelAlphaDropout channels(0.25);
  for (const auto& [module, together] : {std::pair<Module*, size_t>{&elements, 1}, {&channels, 6}}) {
    for (const auto& [x, kept] : {std::pair{1.0F, 1.24843931}, {-0.5F, -0.0524475873}}) {
      const std::vector<double> y =
          evaluate(*module, Tensor::of<float>({40, 5, 2, 3}, std::vector<float>(1200, x))).to_f64();
      size_t dropped = 0;
      for (size_t i = 0; i < y.size(); ++i) {
        const bool stays = std::fabs(y[i] - kept) < 1e-6;
        ASSERT_TRUE(stays || std::fabs(y[i] + 1.1435442) < 1e-6) << y[i];
        ASSERT_EQ(y[i], y[i - i % together]) << i;
        dropped += stays ? 0 : 1;
      }
      EXPECT_NEAR(static_cast<double>(dropped) / 1200, 0.25, 0.2);
      EXPECT_GT(dropped, 0U);
    }
    module->eval();
    EXPECT_TRUE(evaluate(*module, drawn({2, 3, 4}, 1)).bitwise_equal(drawn({2, 3, 4}, 1)));
  }
}

}  // namespace
}  // namespace autograph::nn
