// A call read as one product of 8-bit numbers: qlinear_conv, qlinear_matmul, conv_integer, or `fused` with a body of
//
//   dequantize_linear -> conv, matmul or gemm -> add a bias, add a dequantized residual, relu or clip ->
//   quantize_linear
//
// whichever of the later parts are there. With s the scale of the accumulator:
//
//   y = clip(s[c] * (sum (x - x.zero) * (w - w_zero[c])) + bias[c] + residual), quantized when the output is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autograph/kernel.h"

namespace autograph {

/// A tensor of the call whose elements mean scale * (q - zero).
struct QuantizedTensor {
  int input = -1;  ///< Which input of the call; -1: an output.
  DType dtype = DType::undefined;
  float scale = 1;
  int32_t zero = 0;
};

/// Refers to the attributes of the call it was read from.
struct QuantizedCall {
  /// Reads `call`; nothing, and why, when it is something else.
  static std::optional<QuantizedCall> read(const KernelCall& call, std::string& why_not);

  const OpDef* op = nullptr;  ///< conv, matmul or gemm.
  const Attributes* attributes = nullptr;
  QuantizedTensor x;
  int w = -1;  ///< Input of the call with the weights.
  DType w_dtype = DType::undefined;
  Tensor weights;                  ///< When they are known.
  std::vector<int32_t> w_zero{0};  ///< One, or one per output channel.
  std::vector<float> scale{1};     ///< Real value of one unit of the accumulator: one, or one per output channel.
  std::vector<float> bias;         ///< Real values, one per output channel; empty: none.
  std::optional<QuantizedTensor> residual;
  float low = 0;  ///< Bounds before quantization; low > high: none.
  float high = -1;
  QuantizedTensor y;  ///< dtype f32 or i32: not quantized.
  Dims x_dims, w_dims, y_dims;

  bool is_conv() const;
  /// Axis of the weights along which the output channels lie.
  size_t channel_axis_of_weights() const;
  int64_t num_channels() const { return w_dims[channel_axis_of_weights()]; }
  bool is_clipped() const { return low <= high; }
  /// What of a gemm a matmul with a bias, perhaps of a transposed matrix, does not compute; "" if nothing.
  std::string why_not_matmul() const;
  /// Weights as i8 with a zero point of 0, when they are known and fit; else absent.
  Tensor signed_weights() const;
  /// Do the weights have to be known to be made signed?
  bool must_shift_weights() const;
  /// "" if they surely fit, else why not.
  std::string why_not_signed_weights() const;
};

}  // namespace autograph
