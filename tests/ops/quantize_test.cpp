#include "autograph/ops/quantize.h"

#include <gtest/gtest.h>

#include "ops/call_op.h"
#include "ops/defs.h"

namespace autograph {
namespace {

TEST(QuantizeLinear, RoundsHalfToEvenAndSaturates) {
  const Tensor x = Tensor::of<float>({5}, {1, 3, 5, 1000, -1000});
  const Tensor scale = Tensor::scalar(2.0F);
  EXPECT_EQ(call_op(quantize_linear_def(), {x, scale, Tensor::scalar<int8_t>(1)})[0].to_i64(),
            (std::vector<int64_t>{1, 3, 3, 127, -128}));
  EXPECT_EQ(call_op(quantize_linear_def(), {x, scale})[0].dtype(), DType::u8);
}

TEST(QuantizeLinear, TakesOneScalePerBlock) {
  const Tensor x = Tensor::of<float>({3}, {8, 8, 8});
  const Tensor scale = Tensor::of<float>({2}, {1, 4});
  const Attributes attributes{{"axis", int64_t{0}}, {"block_size", int64_t{2}}};
  EXPECT_EQ(call_op(quantize_linear_def(), {x, scale}, attributes)[0].to_i64(), (std::vector<int64_t>{8, 8, 2}));
}

TEST(DequantizeLinear, TakesOneScalePerChannel) {
  const Tensor x = Tensor::of<uint8_t>({2, 2}, {1, 2, 3, 4});
  const Tensor scale = Tensor::of<float>({2}, {1, 10});
  const Tensor zero = Tensor::of<uint8_t>({2}, {1, 2});
  EXPECT_EQ(call_op(dequantize_linear_def(), {x, scale, zero})[0].to_f64(), (std::vector<double>{0, 0, 2, 20}));
  EXPECT_THROW(call_op(dequantize_linear_def(), {x, Tensor::of<float>({3}, {1, 2, 3})}), ShapeError);
}

// How exporters write them for one scale: [] beside [1].
TEST(Quantize, ScalarsAndVectorsOfOneElementGoTogether) {
  const Tensor one_scale = Tensor::scalar(2.0F);
  const Tensor scales = Tensor::of<float>({1}, {2});
  const Tensor one_zero = Tensor::scalar<uint8_t>(1);
  const Tensor zeros = Tensor::of<uint8_t>({1}, {1});
  const Tensor x = Tensor::of<float>({2, 2}, {2, 4, 6, 8});
  const Tensor bytes = Tensor::of<uint8_t>({2, 2}, {2, 3, 4, 5});
  for (const auto& [scale, zero] : {std::pair(one_scale, zeros), std::pair(scales, one_zero)}) {
    EXPECT_EQ(call_op(quantize_linear_def(), {x, scale, zero})[0].to_i64(), (std::vector<int64_t>{2, 3, 4, 5}));
    EXPECT_EQ(call_op(dequantize_linear_def(), {bytes, scale, zero})[0].to_f64(), (std::vector<double>{2, 4, 6, 8}));
  }
  EXPECT_THROW(call_op(quantize_linear_def(), {x, one_scale, Tensor::of<uint8_t>({2}, {1, 1})}), ShapeError);
}

TEST(MatmulInteger, SubtractsZeroPointsPerRow) {
  const Tensor a = Tensor::of<uint8_t>({2, 1}, {5, 7});
  const Tensor b = Tensor::of<int8_t>({1, 2}, {-1, 2});
  const Tensor a_zero = Tensor::of<uint8_t>({2}, {1, 2});
  EXPECT_EQ(call_op(matmul_integer_def(), {a, b, a_zero})[0].to_i64(), (std::vector<int64_t>{-4, 8, -5, 10}));
}

TEST(Quantize, SamplesOfEveryOpRun) {
  for (const OpDef* op : {&conv_integer_def(), &dequantize_linear_def(), &dynamic_quantize_linear_def(),
                          &matmul_integer_def(), &qlinear_conv_def(), &qlinear_matmul_def(), &quantize_linear_def()}) {
    run_samples(*op, 200);
  }
}

}  // namespace
}  // namespace autograph
