// Typed builders of the elementwise ops. Shapes: with one tensor input the output has its shape; with several, the
// shape to which all of them broadcast.
#pragma once

#include <vector>

#include "autograph/builder.h"

namespace autograph {

// ---- Arithmetic: the dtype of the inputs ---------------------------------------------------------------------

Var abs(Var x);
Var neg(Var x);
Var sign(Var x);
Var add(Var a, Var b);
Var sub(Var a, Var b);
Var mul(Var a, Var b);
/// a * b, and 0 wherever a is 0, also where b is infinite or NaN; floats.
Var mul_no_nan(Var a, Var b);
/// a where b is above 0, else 0, also where b is NaN; floats.
Var where_positive(Var a, Var b);
/// Integers truncate towards zero; division by zero gives 0.
Var div(Var a, Var b);
/// a ^ b, in the dtype of a.
Var pow(Var a, Var b);
/// Remainder with the sign of b, or with the sign of a when `fmod`.
Var mod(Var a, Var b, bool fmod = false);
/// Any number of inputs >= 1.
Var max(const std::vector<Var>& inputs);
Var min(const std::vector<Var>& inputs);
Var sum(const std::vector<Var>& inputs);
Var mean(const std::vector<Var>& inputs);
/// min(max(x, low), high); bounds are scalars and may be missing.
Var clip(Var x, Var low, Var high);
/// x < 0 ? slope * x : x; slope broadcasts to the shape of x.
Var prelu(Var x, Var slope);

// ---- Functions of floats -------------------------------------------------------------------------------------

Var exp(Var x);
Var log(Var x);
Var sqrt(Var x);
Var reciprocal(Var x);
Var erf(Var x);
Var floor(Var x);
Var ceil(Var x);
/// Halves go to the even neighbour.
Var round(Var x);
Var sin(Var x);
Var cos(Var x);
Var tan(Var x);
Var asin(Var x);
Var acos(Var x);
Var atan(Var x);
Var sinh(Var x);
Var cosh(Var x);
Var asinh(Var x);
Var acosh(Var x);
Var atanh(Var x);

// ---- Bits and logic ------------------------------------------------------------------------------------------

Var bitwise_not(Var x);
Var bitwise_and(Var a, Var b);
Var bitwise_or(Var a, Var b);
Var bitwise_xor(Var a, Var b);
/// Moves the bits of a by b places; right shifts of signed dtypes copy the sign.
Var bit_shift(Var a, Var b, bool left);
Var logical_not(Var x);
Var logical_and(Var a, Var b);
Var logical_or(Var a, Var b);
Var logical_xor(Var a, Var b);

// ---- Comparisons: bool ---------------------------------------------------------------------------------------

Var equal(Var a, Var b);
Var less(Var a, Var b);
Var greater(Var a, Var b);
Var less_or_equal(Var a, Var b);
Var greater_or_equal(Var a, Var b);
Var is_nan(Var x);
Var is_inf(Var x, bool detect_negative = true, bool detect_positive = true);

// ---- Selection and conversion --------------------------------------------------------------------------------

/// condition ? x : y.
Var where(Var condition, Var x, Var y);
/// A copy of any value: tensor, sequence or optional.
Var identity(Var x);
/// x, through which no gradient flows.
Var stop_gradient(Var x);
/// The elements as another dtype.
Var cast(Var x, DType to);
/// The elements in the dtype of `like`.
Var cast_like(Var x, Var like);
/// The bits as another dtype of equal width.
Var bit_cast(Var x, DType to);

}  // namespace autograph
