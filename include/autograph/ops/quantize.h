// Typed builders of the quantization ops.
#pragma once

#include "autograph/builder.h"

namespace autograph {

/// round(x / scale) + zero_point, saturated to the dtype of zero_point (u8 without one); shape of x. `scale` is a
/// scalar or has one element per position along `axis`; zero_point has its shape.
Var quantize_linear(Var x, Var scale, Var zero_point = {}, int64_t axis = 1);
/// (x - zero_point) * scale in the dtype of scale; shape of x.
Var dequantize_linear(Var x, Var scale, Var zero_point = {}, int64_t axis = 1);

}  // namespace autograph
