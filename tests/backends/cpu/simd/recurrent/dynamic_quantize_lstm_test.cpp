// The LSTM on packed bytes against its definition: the lstm of the weights that the bytes stand for.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autograph/op_def.h"
#include "autograph/random.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/recurrent/byte_gates.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

struct LstmShape {
  int64_t length, batch, input, hidden;
  std::string direction = "forward";

  int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }
};

Tensor floats(Random& random, Dims dims, double bound = 0.5) {
  return draw_tensor(random, DType::f32, std::move(dims), -bound, bound);
}

// With every optional input at random.
OpSample lstm_sample(Random& random, const LstmShape& shape) {
  const int64_t d = shape.directions(), columns = 4 * shape.hidden;
  const DType dtype = draw_bool(random) ? DType::i8 : DType::u8;
  const double low = dtype == DType::i8 ? -128 : 0;
  const Dims quantization = draw_bool(random) ? Dims{d} : Dims{d, columns};
  OpSample sample;
  sample.inputs.resize(12);
  sample.inputs[0] = floats(random, {shape.length, shape.batch, shape.input}, 2);
  sample.inputs[1] = draw_tensor(random, dtype, {d, shape.input, columns}, low, low + 255);
  sample.inputs[2] = draw_tensor(random, dtype, {d, shape.hidden, columns}, low, low + 255);
  if (draw_bool(random)) sample.inputs[3] = floats(random, {d, 2 * columns});
  if (draw_bool(random)) {
    sample.inputs[4] = draw_tensor(random, DType::i32, {shape.batch}, 0, static_cast<double>(shape.length));
  }
  for (const size_t slot : {size_t{5}, size_t{6}}) {
    if (draw_bool(random)) sample.inputs[slot] = floats(random, {d, shape.batch, shape.hidden}, 2);
  }
  if (draw_bool(random)) sample.inputs[7] = floats(random, {d, 3 * shape.hidden});
  for (const size_t slot : {size_t{8}, size_t{10}}) {
    sample.inputs[slot] = draw_tensor(random, DType::f32, quantization, 0.0005, 0.004);
    const bool in_the_middle = draw_bool(random);
    const double middle = low + 128;
    sample.inputs[slot + 1] = in_the_middle ? draw_tensor(random, dtype, quantization, middle, middle)
                                            : draw_tensor(random, dtype, quantization, low, low + 255);
  }
  sample.attributes = {{"direction", shape.direction}, {"input_forget", draw(random, 0, 1)}};
  if (draw_bool(random)) sample.attributes.set("clip", 0.7F);
  sample.num_outputs = static_cast<int>(draw(random, 1, 3));
  return sample;
}

LstmShape draw_shape(Random& random) {
  return {draw(random, 1, 9), draw(random, 1, 14), draw(random, 1, 140), draw(random, 1, 70),
          draw_one_of<std::string>(random, {"forward", "reverse", "bidirectional"})};
}

class DynamicQuantizeLstm : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!simd::has_byte_products()) GTEST_SKIP() << "no byte products on this CPU";
  }
  static void expect_definition(const OpSample& sample, KernelSetup setup, const FloatTolerance& tolerance) {
    setup.constant_weights = true;
    expect_reference(simd::dynamic_quantize_lstm_kernel(), KernelCase(dynamic_quantize_lstm_def(), sample, setup),
                     tolerance);
  }
};

// On every instruction set that has byte products.
template <class Body>
void wherever_it_runs(const Body& body) {
  with_and_without_vnni([&] {
    if (simd::has_byte_products()) body();
  });
}

TEST_F(DynamicQuantizeLstm, RandomShapes) {
  wherever_it_runs([] {
    Random random(1);
    for (int i = 0; i < 60; ++i) {
      SCOPED_TRACE(i);
      expect_definition(lstm_sample(random, draw_shape(random)), {.threads = 1 + i % 2}, {1e-4, 3e-4});
    }
  });
}

TEST_F(DynamicQuantizeLstm, RoundsNoMoreThanFloatsWhereItMustBeExact) {
  wherever_it_runs([] {
    Random random(2);
    for (int i = 0; i < 30; ++i) {
      SCOPED_TRACE(i);
      expect_definition(lstm_sample(random, draw_shape(random)), {.threads = 1, .exact = true}, {1e-5, 2e-6});
    }
  });
}

// Sums of the largest numbers, more of them than fit 32 bits in one go.
TEST_F(DynamicQuantizeLstm, LongSumsOfTheLargestNumbers) {
  wherever_it_runs([] {
    Random random(8);
    for (const bool exact : {false, true}) {
      OpSample sample = lstm_sample(random, {2, 3, 2000, 20});
      const DType dtype = sample.inputs[1].tensor().dtype();
      const double high = dtype == DType::i8 ? 127 : 255;
      sample.inputs[0] = draw_tensor(random, DType::f32, {2, 3, 2000}, 1.9, 2);
      sample.inputs[1] = draw_tensor(random, dtype, {1, 2000, 80}, high, high);
      sample.inputs[8] = floats(random, sample.inputs[8].tensor().dims(), 1e-6);
      expect_definition(sample, {.threads = 1, .exact = exact}, {1e-4, 1e-4});
    }
  });
}

// More positions than are projected at a time.
TEST_F(DynamicQuantizeLstm, ThreadsAndChunks) {
  Random random(3);
  for (const std::string direction : {"forward", "reverse", "bidirectional"}) {
    for (const int threads : {2, 3}) {
      expect_definition(lstm_sample(random, {70, 5, 24, 120, direction}), {.threads = threads}, {1e-4, 1e-4});
    }
  }
}

// One number of a row that is far above the others leaves them their digits.
TEST_F(DynamicQuantizeLstm, RowsWithOneLargeNumber) {
  Random random(4);
  OpSample sample = lstm_sample(random, {3, 4, 130, 40});
  Tensor x = sample.inputs[0].tensor().clone();
  auto* const elements = x.mutable_data<float>();
  for (int64_t i = 0; i < x.num_elements(); ++i) elements[i] *= i % 130 == 7 ? 0.0F : 0.01F;
  Tensor weights = sample.inputs[1].tensor().clone();
  for (int64_t row = 0; row < 12; row += 2) elements[row * 130 + 7] = 3000;
  // What the large number is multiplied with is its zero point, so that only the others are seen.
  const Tensor zero = sample.inputs[9].tensor();
  auto* const bytes = static_cast<uint8_t*>(weights.mutable_raw());
  for (int64_t column = 0; column < 160; ++column) {
    bytes[7 * 160 + column] = static_cast<const uint8_t*>(zero.raw())[zero.num_elements() == 1 ? 0 : column];
  }
  sample.inputs[0] = x;
  sample.inputs[1] = weights;
  expect_definition(sample, {}, {1e-4, 2e-4});
}

// A few peaks, of several sizes, among small numbers or among zeros; and rows that are nothing but peaks among peaks.
TEST_F(DynamicQuantizeLstm, RowsWithPeaks) {
  wherever_it_runs([] {
    Random random(9);
    for (int i = 0; i < 40; ++i) {
      SCOPED_TRACE(i);
      const int64_t input = draw(random, 100, 300);
      OpSample sample = lstm_sample(random, {2, draw(random, 1, 7), input, 20});
      Tensor x = sample.inputs[0].tensor().clone();
      auto* const elements = x.mutable_data<float>();
      const double rest = i % 4 == 0 ? 0 : 0.003, steps = i % 4 == 3 ? 1 : 40;
      for (int64_t j = 0; j < x.num_elements(); ++j) {
        const bool is_peak = draw(random, 0, static_cast<int64_t>(steps)) == 0;
        const auto power = 0.1 * static_cast<double>(draw(random, -25, 0));
        elements[j] *= static_cast<float>(is_peak ? std::pow(10, power) : rest);
      }
      sample.inputs[0] = x;
      expect_definition(sample, {}, {1e-4, 3e-4});
    }
  });
}

TEST_F(DynamicQuantizeLstm, InfinityAndNanStayInTheirSequence) {
  Random random(5);
  OpSample sample = lstm_sample(random, {3, 4, 20, 10});
  Tensor x = sample.inputs[0].tensor().clone();
  x.mutable_data<float>()[3] = std::numeric_limits<float>::infinity();
  x.mutable_data<float>()[25] = std::numeric_limits<float>::quiet_NaN();
  sample.inputs[0] = x;
  expect_definition(sample, {}, {1e-4, 5e-5});
}

// Bytes are multiplied four at a time wherever the CPU does so: a number is three of them, not two of 16 bits.
TEST_F(DynamicQuantizeLstm, RowsAreBytesWithVnni) {
  if (!simd::has_wide_vnni()) GTEST_SKIP() << "a CPU without VNNI";
  constexpr int64_t kDepth = 64;
  const int64_t size = simd::byte_row_size(kDepth);
  simd::forbid_wide_vnni(true);
  const int64_t size_without = simd::byte_row_size(kDepth);
  simd::forbid_wide_vnni(false);
  EXPECT_EQ((size_without - size) * static_cast<int64_t>(sizeof(float)), kDepth);
}

TEST_F(DynamicQuantizeLstm, SaysWhatItRefuses) {
  Random random(6);
  OpSample sample = lstm_sample(random, {2, 1, 3, 4});
  const KernelDef kernel = simd::dynamic_quantize_lstm_kernel();
  const auto refusal = [&](bool constant_weights) {
    return KernelRun(kernel, KernelCase(dynamic_quantize_lstm_def(), sample, {.constant_weights = constant_weights}))
        .refusal();
  };
  EXPECT_EQ(refusal(false), "weights that are computed");
  sample.attributes.set("activations", std::vector<std::string>{"Sigmoid", "Relu", "Tanh"});
  EXPECT_EQ(refusal(true), "activation functions other than the usual ones");
}

TEST(DynamicQuantizeLstmOp, RejectsScalesThatDoNotFit) {
  Random random(7);
  OpSample sample = lstm_sample(random, {2, 1, 3, 4});
  sample.inputs[8] = floats(random, {2});
  EXPECT_THROW(KernelCase(dynamic_quantize_lstm_def(), sample), ShapeError);
}

}  // namespace
}  // namespace autograph
