// Contrib ops on quantized tensors: exact bytes, and products against plain loops.
#include "autograph/builder.h"
#include "autograph/ops/recurrent.h"
#include "autograph/random.h"
#include "io/contrib_node.h"
#include "ops/sample.h"

namespace autograph::tests {
namespace {

using Bytes = std::vector<double>;

Bytes bytes_of(const ContribNode& node) { return node.result().to_f64(); }

TEST(ContribQuantized, Add) {
  // 0.5 * (x - 2) + 0.25 * (y - 0), in steps of 0.5 from 10 on; the last one saturates.
  EXPECT_EQ(bytes_of(ContribNode("QLinearAdd")
                         .input(u8({3}, {2, 6, 255}))
                         .constant(f32(0.5F))
                         .constant(u8(2))
                         .input(u8({3}, {4, 2, 255}))
                         .constant(f32(0.25F))
                         .skip()
                         .constant(f32(0.5F))
                         .constant(u8(10))),
            (Bytes{12, 15, 255}));
}

TEST(ContribQuantized, MulOfSignedBytesWithoutZeroPoints) {
  EXPECT_EQ(bytes_of(ContribNode("QLinearMul")
                         .input(i8({2, 2}, {-4, 4, 8, -128}))
                         .constant(f32(0.5F))
                         .skip()
                         .input(i8({2}, {3, -2}))
                         .constant(f32(1.0F))
                         .skip()
                         .constant(f32(1.0F))),
            (Bytes{-6, -4, 12, 127}));
}

TEST(ContribQuantized, LeakyReluAndSigmoid) {
  EXPECT_EQ(bytes_of(ContribNode("QLinearLeakyRelu")
                         .input(i8({3}, {-20, 0, 20}))
                         .constant(f32(1.0F))
                         .constant(i8(0))
                         .constant(f32(1.0F))
                         .constant(i8(5))
                         .set("alpha", 0.5F)),
            (Bytes{-5, 5, 25}));
  EXPECT_EQ(bytes_of(ContribNode("QLinearSigmoid")
                         .input(u8({3}, {0, 100, 200}))
                         .constant(f32(1.0F))
                         .constant(u8(100))
                         .constant(f32(1 / 256.0F))
                         .constant(u8(0))),
            (Bytes{0, 128, 255}));
}

TEST(ContribQuantized, SoftmaxOverAllDimsFromTheAxisBeforeOpset13) {
  const auto node = [](int opset) {
    return ContribNode("QLinearSoftmax")
        .input(u8({1, 2, 2}, {7, 7, 7, 7}))
        .constant(f32(0.1F))
        .constant(u8(0))
        .constant(f32(1 / 256.0F))
        .constant(u8(0))
        .set("axis", 1)
        .set("opset", opset);
  };
  EXPECT_EQ(bytes_of(node(11)), (Bytes{64, 64, 64, 64}));
  EXPECT_EQ(bytes_of(node(13)), (Bytes{128, 128, 128, 128}));
}

TEST(ContribQuantized, ConcatKeepsBytesOfEqualScale) {
  EXPECT_EQ(bytes_of(ContribNode("QLinearConcat")
                         .constant(f32(0.5F))
                         .constant(u8(1))
                         .input(u8({1, 2}, {3, 200}))
                         .constant(f32(0.5F))
                         .constant(u8(1))
                         .input(u8({1, 2}, {3, 200}))
                         .constant(f32(1.0F))
                         .constant(u8(0))
                         .set("axis", -1)),
            (Bytes{3, 200, 7, 255}));
}

TEST(ContribQuantized, Where) {
  EXPECT_EQ(bytes_of(ContribNode("QLinearWhere")
                         .input(Tensor::of<bool>({2}, {true, false}))
                         .input(u8({2}, {10, 20}))
                         .constant(f32(1.0F))
                         .constant(u8(0))
                         .input(u8({2}, {30, 40}))
                         .constant(f32(0.5F))
                         .constant(u8(0))
                         .constant(f32(1.0F))
                         .constant(u8(5))),
            (Bytes{15, 25}));
}

TEST(ContribQuantized, AveragePoolCountsWholeWindowsBeyondTheEnd) {
  const auto node = [](int ceil) {
    return ContribNode("QLinearAveragePool")
        .input(u8({1, 1, 1, 4}, {30, 60, 90, 30}))
        .constant(f32(1.0F))
        .constant(u8(0))
        .constant(f32(1.0F))
        .constant(u8(0))
        .set("kernel_shape", std::vector<int64_t>{1, 3})
        .set("strides", std::vector<int64_t>{1, 2})
        .set("count_include_pad", 1)
        .set("ceil_mode", ceil);
  };
  EXPECT_EQ(bytes_of(node(0)), (Bytes{60}));
  EXPECT_EQ(bytes_of(node(1)), (Bytes{60, 40}));  // (90 + 30 + nothing) / 3
}

TEST(ContribQuantized, GlobalAveragePoolWithChannelsLast) {
  EXPECT_EQ(bytes_of(ContribNode("QLinearGlobalAveragePool")
                         .input(u8({1, 2, 1, 2}, {10, 100, 30, 50}))
                         .constant(f32(1.0F))
                         .constant(u8(0))
                         .constant(f32(1.0F))
                         .constant(u8(0))
                         .set("channels_last", 1)),
            (Bytes{20, 75}));
}

TEST(ContribQuantized, ConvWithChannelsLast) {
  // A 1x1 convolution of two channels: y = x0 + 2 x1 - 3.
  EXPECT_EQ(bytes_of(ContribNode("QLinearConv")
                         .input(u8({1, 1, 2, 2}, {1, 2, 30, 40}))
                         .constant(f32(1.0F))
                         .constant(u8(0))
                         .constant(i8({1, 2, 1, 1}, {1, 2}))
                         .constant(f32(1.0F))
                         .constant(i8(0))
                         .constant(f32(1.0F))
                         .constant(u8(0))
                         .constant(i32({1}, {-3}))
                         .set("channels_last", 1)),
            (Bytes{2, 107}));
}

TEST(ContribQuantized, LinearPairOfTheDomain) {
  EXPECT_EQ(bytes_of(ContribNode("QuantizeLinear").input(f32({2}, {1, -9})).constant(f32(0.5F)).constant(i8(3))),
            (Bytes{5, -15}));
  EXPECT_EQ(bytes_of(ContribNode("DequantizeLinear")
                         .input(u8({2, 2}, {1, 2, 3, 4}))
                         .constant(f32({2}, {1, 10}))
                         .constant(u8({2}, {1, 0}))
                         .set("axis", 1)),
            (Bytes{0, 20, 2, 40}));
}

TEST(ContribQuantized, IntegerSumsAndProducts) {
  EXPECT_EQ(
      bytes_of(ContribNode("MulInteger").input(u8({2}, {5, 255})).constant(u8(1)).input(u8({2}, {3, 255})).skip()),
      (Bytes{12, 254 * 255}));
  EXPECT_EQ(bytes_of(ContribNode("ReduceSumInteger")
                         .input(u8({2, 2}, {250, 250, 1, 2}))
                         .set("axes", std::vector<int64_t>{1})
                         .set("keepdims", 0)),
            (Bytes{500, 3}));
}

// ---- Products --------------------------------------------------------------------------------------------------

struct Matrices {
  Tensor a, b, b_scale, b_zero, bias;
};

Matrices draw_matrices(Random& random, DType b, bool per_column) {
  const Dims columns = per_column ? Dims{5} : Dims{};
  return {draw_tensor(random, DType::u8, {3, 7}, 0, 255), draw_tensor(random, b, {7, 5}, -100, 100),
          draw_tensor(random, DType::f32, columns, 0.01, 0.1), draw_tensor(random, b, columns, 0, 9),
          draw_tensor(random, DType::f32, {5}, -3, 3)};
}

double at(const std::vector<double>& values, size_t i) { return values.size() == 1 ? values[0] : values[i]; }

// a_scale (a - a_zero) (b - b_zero) b_scale + bias.
std::vector<double> product(const Matrices& m, double a_scale, double a_zero) {
  const std::vector<double> a = m.a.to_f64(), b = m.b.to_f64(), scale = m.b_scale.to_f64(), zero = m.b_zero.to_f64();
  std::vector<double> y;
  for (size_t row = 0; row < 3; ++row) {
    for (size_t column = 0; column < 5; ++column) {
      double sum = 0;
      for (size_t k = 0; k < 7; ++k) sum += (a[row * 7 + k] - a_zero) * (b[k * 5 + column] - at(zero, column));
      y.push_back(sum * a_scale * at(scale, column) + m.bias.to_f64()[column]);
    }
  }
  return y;
}

TEST(ContribQuantized, MatMulIntegerToFloat) {
  Random random(1);
  for (const DType dtype : {DType::i8, DType::u8}) {
    for (const bool per_column : {false, true}) {
      const Matrices m = draw_matrices(random, dtype, per_column);
      const ContribNode node = ContribNode("MatMulIntegerToFloat")
                                   .input(m.a)
                                   .constant(m.b)
                                   .input(f32(0.03F))
                                   .constant(m.b_scale)
                                   .input(u8(9))
                                   .constant(m.b_zero)
                                   .constant(m.bias);
      expect_near(node.result(), product(m, 0.03F, 9), 1e-3);
    }
  }
}

TEST(ContribQuantized, DynamicQuantizeMatMulIsTheProductOfRoundedNumbers) {
  Random random(2);
  Matrices m = draw_matrices(random, DType::i8, true);
  // Multiples of 1 / 255 from 0 to 1 are represented exactly.
  std::vector<float> a;
  for (const int64_t byte : m.a.to_i64()) a.push_back(static_cast<float>(byte) / 255.0F);
  a[0] = 0, a[1] = 1;
  m.a.mutable_data<uint8_t>()[0] = 0, m.a.mutable_data<uint8_t>()[1] = 255;
  const ContribNode node = ContribNode("DynamicQuantizeMatMul")
                               .input(f32({3, 7}, a))
                               .constant(m.b)
                               .constant(m.b_scale)
                               .constant(m.b_zero)
                               .constant(m.bias);
  expect_near(node.result(), product(m, 1.0 / 255, 0), 1e-3);
}

TEST(ContribQuantized, GemmWithBiasInUnitsOfTheProduct) {
  // 0.5 * [[1, 2]] * [[3], [4]] * 0.25 + 8 units of 0.125 = 1.375 + 1.
  const auto node = [] {
    return ContribNode("QGemm")
        .input(u8({1, 2}, {3, 4}))
        .constant(f32(0.5F))
        .constant(u8(2))
        .constant(i8({1, 2}, {3, 4}))
        .constant(f32({1}, {0.25F}))
        .constant(i8({1}, {0}))
        .constant(i32({1}, {8}))
        .set("transB", 1);
  };
  EXPECT_EQ(bytes_of(node()), (Bytes{2.375}));
  EXPECT_EQ(bytes_of(node().constant(f32(0.125F)).constant(u8(1))), (Bytes{20}));
  EXPECT_EQ(bytes_of(node().set("alpha", 2.0F)), (Bytes{4.75}));
}

TEST(ContribQuantized, GemmWithTransposedRowsOfUnknownExtent) {
  EXPECT_EQ(bytes_of(ContribNode("QGemm")
                         .input(u8({3, 2}, {1, 2, 3, 4, 5, 6}))
                         .constant(f32(1.0F))
                         .constant(u8(0))
                         .constant(i8({3, 1}, {1, 2, 3}))
                         .constant(f32(1.0F))
                         .constant(i8(0))
                         .set("transA", 1)),
            (Bytes{22, 28}));
}

TEST(ContribQuantized, DynamicQuantizeLstmIsTheLstmOfDequantizedWeights) {
  Random random(3);
  const Tensor x = draw_tensor(random, DType::f32, {4, 2, 3}, -1, 1);
  const Tensor bias = draw_tensor(random, DType::f32, {2, 16}, -1, 1);
  const Tensor w = draw_tensor(random, DType::i8, {2, 3, 8}, -100, 100);
  const Tensor r = draw_tensor(random, DType::i8, {2, 2, 8}, -100, 100);
  const Tensor w_scale = draw_tensor(random, DType::f32, {2, 8}, 0.002, 0.01);
  const auto node = [&] {
    return ContribNode("DynamicQuantizeLSTM")
        .input(x)
        .constant(w)
        .constant(r)
        .constant(bias)
        .skip()
        .skip()
        .skip()
        .skip();
  };
  const std::vector<Tensor> actual = node()
                                         .constant(w_scale)
                                         .constant(Tensor::zeros(DType::i8, {2, 8}))
                                         .constant(f32({2}, {0.01F, 0.02F}))
                                         .constant(i8({2}, {3, -4}))
                                         .set("hidden_size", 2)
                                         .set("direction", std::string("bidirectional"))
                                         .outputs({true, true, true})
                                         .run();
  // The weights by hand: [directions, 4 * hidden, inputs].
  std::vector<float> w_real, r_real;
  for (int64_t d = 0; d < 2; ++d) {
    for (int64_t gate = 0; gate < 8; ++gate) {
      for (int64_t i = 0; i < 3; ++i) {
        w_real.push_back(static_cast<float>(w.to_f64()[(d * 3 + i) * 8 + gate] * w_scale.to_f64()[d * 8 + gate]));
      }
      for (int64_t i = 0; i < 2; ++i) {
        const double shifted = r.to_f64()[(d * 2 + i) * 8 + gate] - (d == 0 ? 3 : -4);
        r_real.push_back(static_cast<float>(shifted * (d == 0 ? 0.01F : 0.02F)));
      }
    }
  }
  Graph graph;
  const Var xs = autograph::input(graph, DType::f32, {4, 2, 3}, "x");
  const auto weights = [&](Dims dims, const std::vector<float>& values) {
    return autograph::constant(graph, f32(std::move(dims), values));
  };
  for (const Var& y : lstm(xs, weights({2, 8, 3}, w_real), weights({2, 8, 2}, r_real), autograph::constant(graph, bias),
                           "bidirectional")) {
    graph.add_output(y.id(), "y");
  }
  const std::vector<Datum> expected = compile(std::move(graph)).run({x});
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(difference(actual[i], expected[i]), "");
}

// ---- Blocks ----------------------------------------------------------------------------------------------------

// y = a * (b - zero) * scale with b [n, k] in blocks along k.
std::vector<double> block_product(const std::vector<double>& a, const std::vector<int>& b, int64_t n, int64_t k,
                                  const std::vector<double>& scale, const std::vector<double>& zero, int64_t block) {
  const int64_t blocks = (k + block - 1) / block;
  std::vector<double> y;
  for (size_t row = 0; row < a.size() / static_cast<size_t>(k); ++row) {
    for (int64_t column = 0; column < n; ++column) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i) {
        const auto at_block = static_cast<size_t>(column * blocks + i / block);
        sum += a[row * static_cast<size_t>(k) + static_cast<size_t>(i)] *
               (b[static_cast<size_t>(column * k + i)] - zero[at_block]) * scale[at_block];
      }
      y.push_back(sum);
    }
  }
  return y;
}

// The elements of `rows` rows in groups of `per_row`, the first one in the lowest bits; rows fill whole bytes.
std::vector<uint8_t> pack(const std::vector<int>& elements, size_t per_row, size_t row_bytes, int bits) {
  std::vector<uint8_t> bytes(elements.size() / per_row * row_bytes, 0);
  const size_t per_byte = 8 / static_cast<size_t>(bits);
  for (size_t i = 0; i < elements.size(); ++i) {
    const size_t column = i % per_row;
    bytes[i / per_row * row_bytes + column / per_byte] |=
        static_cast<uint8_t>(elements[i] << (column % per_byte * static_cast<size_t>(bits)));
  }
  return bytes;
}

TEST(ContribQuantized, MatMulNBits) {
  Random random(4);
  constexpr int64_t kN = 3, kK = 20, kBlock = 16, kBlocks = 2;
  for (const int bits : {2, 4, 8}) {
    const Tensor a = draw_tensor(random, DType::f32, {2, kK}, -1, 1);
    const Tensor scales = draw_tensor(random, DType::f32, {kN, kBlocks}, 0.1, 1);
    std::vector<int> elements, zeros, padded;
    for (int64_t i = 0; i < kN * kK; ++i) elements.push_back(static_cast<int>(draw(random, 0, (1 << bits) - 1)));
    for (int64_t i = 0; i < kN * kBlocks; ++i) zeros.push_back(static_cast<int>(draw(random, 0, (1 << bits) - 1)));
    for (int64_t i = 0; i < kN * kBlocks * kBlock; ++i) {
      const int64_t column = i % (kBlocks * kBlock);
      padded.push_back(column < kK ? elements[static_cast<size_t>(i / (kBlocks * kBlock) * kK + column)] : 1);
    }
    const size_t zero_bytes = (kBlocks * static_cast<size_t>(bits) + 7) / 8;
    const Tensor b = u8({kN, kBlocks, kBlock * bits / 8}, pack(padded, kBlock, kBlock * bits / 8, bits));
    const Tensor zero = u8({static_cast<int64_t>(kN * zero_bytes)}, pack(zeros, kBlocks, zero_bytes, bits));
    const std::vector<double> middle(kN * kBlocks, 1 << (bits - 1));
    const std::vector<double> given(zeros.begin(), zeros.end());
    for (const bool known : {true, false}) {
      for (const bool with_zero : {false, true}) {
        ContribNode node = ContribNode("MatMulNBits").input(a);
        (known ? node.constant(b) : node.input(b)).constant(scales);
        if (with_zero) known ? node.constant(zero) : node.input(zero);
        node.set("bits", bits).set("block_size", int{kBlock}).set("N", int{kN}).set("K", int{kK});
        const std::vector<double> expected =
            block_product(a.to_f64(), elements, kN, kK, scales.to_f64(), with_zero ? given : middle, kBlock);
        expect_near(node.result({.rtol = 1e-4, .atol = 1e-3}), expected, 2e-3);
      }
    }
  }
}

TEST(ContribQuantized, MatMulNBitsOfHalves) {
  Random random(6);
  constexpr int64_t kN = 3, kK = 32;
  const Tensor a = draw_tensor(random, DType::f16, {2, kK}, -1, 1);
  const Tensor scales = draw_tensor(random, DType::f16, {kN, 2}, 0.1, 1);
  std::vector<int> elements;
  for (int64_t i = 0; i < kN * kK; ++i) elements.push_back(static_cast<int>(draw(random, 0, 15)));
  for (const int level : {0, 4}) {
    const ContribNode node = ContribNode("MatMulNBits")
                                 .input(a)
                                 .constant(u8({kN, 2, 8}, pack(elements, 16, 8, 4)))
                                 .constant(scales)
                                 .set("bits", 4)
                                 .set("block_size", 16)
                                 .set("N", int{kN})
                                 .set("K", int{kK})
                                 .set("accuracy_level", level);
    const Tensor y = node.result({.rtol = 2e-3, .atol = 2e-3});
    EXPECT_EQ(y.dtype(), DType::f16);
    expect_near(y, block_product(a.to_f64(), elements, kN, kK, scales.to_f64(), std::vector<double>(kN * 2, 8), 16),
                0.02);
  }
}

// Blocks run on from one row to the next; the first of two numbers stands in the high bits.
TEST(ContribQuantized, MatMulBnb4) {
  Random random(7);
  constexpr int64_t kN = 3, kK = 5, kBlock = 4;
  const Tensor largest = draw_tensor(random, DType::f32, {4}, 0.5, 2);
  std::vector<int> numbers;
  std::vector<uint8_t> bytes;
  for (int i = 0; i < 16; ++i) numbers.push_back(15 - i);
  for (size_t i = 0; i < 16; i += 2) bytes.push_back(static_cast<uint8_t>(numbers[i] << 4 | numbers[i + 1]));
  const std::vector<std::vector<double>> codes{
      {0, 1 / 192.0, 2 / 3.0, 1, 1 / 3.0, 0.5, 1 / 6.0, 0.25, 0, -1 / 192.0, -2 / 3.0, -1, -1 / 3.0, -0.5, -1 / 6.0,
       -0.25},
      {-1, -0.69619280, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0, 0.07958030, 0.16093020,
       0.24611230, 0.33791524, 0.44070983, 0.56261700, 0.72295684, 1}};
  const auto weight = [&](int type, int64_t row, int64_t column) {
    const auto i = static_cast<size_t>(row * kK + column);
    return codes[static_cast<size_t>(type)][static_cast<size_t>(numbers[i])] * largest.to_f64()[i / kBlock];
  };
  for (const int type : {0, 1}) {
    for (const bool turned : {true, false}) {
      const int64_t depth = turned ? kK : kN, columns = turned ? kN : kK;
      const Tensor a = draw_tensor(random, DType::f32, {2, depth}, -1, 1);
      ContribNode node = ContribNode("MatMulBnb4").input(a).constant(u8({8}, bytes)).constant(largest);
      node.set("N", int{kN}).set("K", int{kK}).set("block_size", int{kBlock}).set("quant_type", type);
      if (!turned) node.set("transB", 0);
      std::vector<double> expected;
      for (int64_t row = 0; row < 2; ++row) {
        for (int64_t j = 0; j < columns; ++j) {
          double sum = 0;
          for (int64_t d = 0; d < depth; ++d) {
            sum +=
                a.to_f64()[static_cast<size_t>(row * depth + d)] * (turned ? weight(type, j, d) : weight(type, d, j));
          }
          expected.push_back(sum);
        }
      }
      expect_near(node.result(), expected, 1e-5);
    }
  }
}

TEST(ContribQuantized, GatherBlockQuantized) {
  std::vector<int> rows;
  for (int i = 0; i < 64; ++i) rows.push_back(i % 16);
  const ContribNode node = ContribNode("GatherBlockQuantized")
                               .constant(u8({2, 16}, pack(rows, 32, 16, 4)))
                               .input(i64({1, 2}, {1, -2}))
                               .constant(f32({2, 2}, {1, 2, 3, 4}))
                               .constant(u8({2, 1}, {0x21, 0x43}))
                               .set("block_size", 16);
  const std::vector<double> y = node.result().to_f64();
  ASSERT_EQ(y.size(), 64U);
  EXPECT_EQ(y[0], (0 - 3) * 3);         // row 1, first block
  EXPECT_EQ(y[21], (5 - 4) * 4);        // row 1, second block
  EXPECT_EQ(y[32 + 15], (15 - 1) * 1);  // row 0
  EXPECT_EQ(y[32 + 31], (15 - 2) * 2);
}

}  // namespace
}  // namespace autograph::tests
