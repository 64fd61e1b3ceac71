// Typed builders of the quantization ops.
#pragma once

#include <vector>

#include "autograph/builder.h"
#include "autograph/ops/window.h"

namespace autograph {

/// round(x / scale) + zero_point, saturated to the dtype of zero_point (u8 without one); shape of x. `scale` is a
/// scalar or has one element per position along `axis`; zero_point has its shape.
Var quantize_linear(Var x, Var scale, Var zero_point = {}, int64_t axis = 1);
/// (x - zero_point) * scale in the dtype of scale; shape of x.
Var dequantize_linear(Var x, Var scale, Var zero_point = {}, int64_t axis = 1);
/// u8 by the range of x: {y, scale, zero point}.
std::vector<Var> dynamic_quantize_linear(Var x);
/// (a - a_zero) (b - b_zero) of bytes in i32.
Var matmul_integer(Var a, Var b, Var a_zero = {}, Var b_zero = {});
/// Bytes with what they stand for: (value - zero_point) * scale.
struct Quantized {
  Var value;
  Var scale;       ///< A scalar, or one element for each output channel of weights.
  Var zero_point;  ///< Dtype of value, shape of scale.
};
/// The matrix product of what a and b stand for, as a byte of `y_scale` and `y_zero`.
Var qlinear_matmul(const Quantized& a, const Quantized& b, Var y_scale, Var y_zero);
/// The convolution of what x and w stand for, as a byte of `y_scale` and `y_zero`; b is i32 [M], of x_scale * w_scale.
Var qlinear_conv(const Quantized& x, const Quantized& w, Var y_scale, Var y_zero, Var b = {},
                 const ConvOptions& options = {});

}  // namespace autograph
