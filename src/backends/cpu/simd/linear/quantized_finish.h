// What becomes of sums of products of bytes: real values, with a bias, a residual and bounds, which are quantized.
#pragma once

#include <cstdint>

#include "autograph/dtype.h"

namespace autograph::simd {

/// y = clip(scale[c] * sum + bias[c] + (residual - zero) * scale); where y is bytes, round(y) + y_zero.
///
/// All of them are in units of y, so that nothing is divided: where the definition has a value in the middle between
/// two bytes, or next to it, the other one may come out.
struct QuantizedFinish {
  const float* scale;  ///< Of each column; readable up to quantized_finish_padding() columns behind the last.
  const float* bias;   ///< As many.
  float low, high;     ///< Bounds; of bytes less their zero point at least.
  DType residual = DType::undefined;  ///< u8, i8, or undefined: none.
  float residual_scale = 1;
  int32_t residual_zero = 0;
  DType y = DType::f32;  ///< u8, i8 or f32.
  int32_t y_zero = 0;
};

/// Columns behind the last that are read of sums, scales and biases.
int64_t quantized_finish_padding();

/// Sums of some rows and columns, and where what becomes of them goes.
struct QuantizedTile {
  const int32_t* sums;
  int64_t sum_stride;
  int64_t rows;
  int64_t column, columns;  ///< The first, and how many.
  const void* residual;     ///< Of the first element; rows lie as those of y do.
  void* y;                  ///< The first element.
  int64_t y_stride;         ///< In elements.
};
void finish_quantized(const QuantizedFinish& finish, const QuantizedTile& tile);

}  // namespace autograph::simd
