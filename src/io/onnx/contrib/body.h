// Pieces that the bodies of several contrib ops share.
#pragma once

#include <limits>

#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/shape.h"
#include "io/onnx/contrib/contrib.h"

namespace autograph::io {

/// Where slices end that take all the rest.
inline constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

/// The one element of `v` as a scalar; Var() stays Var().
Var as_scalar(const ContribCall& call, Var v);
/// `v` under other extents; constants at once.
Var reshape_known(const ContribCall& call, Var v, const std::vector<int64_t>& dims);
/// `v` as `dtype`.
Var as_dtype(Var v, DType dtype);
/// Extent of `axis` of `x` as an i64 vector of one element.
Var extent_of(Var x, int64_t axis);
/// 0, 1, ... up to the i64 vector of one element `count`: i64 [count].
Var counted(const ContribCall& call, Var count);
/// `x` with the last two dims swapped; vectors stay as they are.
Var swapped(const ContribCall& call, Var x);
/// A batch of images from channels-last to channels-first, and back.
Var channels_first(const ContribCall& call, Var x);
Var channels_last(const ContribCall& call, Var x);

/// The activation that the attribute `activation` names, with parameters in order; `x` where it is missing or empty.
Var activated(const ContribCall& call, Var x, const std::vector<float>& parameters);
/// Our ops that it can give.
std::vector<std::string_view> activation_ops();

/// a b of 8-bit numbers as floats: (a - a_zero) (b - b_zero) * a_scale * b_scale + bias. Scales and zero points of b
/// are scalars or [columns], those of a scalars; zero points and bias may be missing.
struct QuantizedOperands {
  Var a, a_scale, a_zero;
  Var b, b_scale, b_zero;
  Var bias;
};
Var quantized_product(const ContribCall& call, const QuantizedOperands& operands);

}  // namespace autograph::io
