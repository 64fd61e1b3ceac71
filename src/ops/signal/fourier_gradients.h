// Gradients of transforms. A transform is a matrix F; real and imaginary parts are numbers of their own, so that its
// gradient is the conjugate transpose of F: the other transform, but for its factor.
#pragma once

#include <cstdint>

#include "autograph/builder.h"

namespace autograph {

/// The extent of `axis` cut or padded with zeros to `length`.
Var fit_axis(const Var& x, int64_t axis, int64_t length);

/// The gradient with respect to a signal of `length` samples, [.., length, .., parts], whose transform along `axis` (of
/// all frequencies, or `gy` has the first ones alone) has the gradient `gy`, [.., frequencies, .., 2]. parts: 1 for
/// real signals.
Var transform_gradient(const Var& gy, int64_t axis, int64_t length, int64_t parts);

/// The same of the inverse transform, which divides by `length`, and of which gy is [.., length, .., 2].
Var inverse_transform_gradient(const Var& gy, int64_t axis, int64_t length);

/// The same of the inverse transform from half a spectrum to a real signal: gy is [.., length, .., 1], the result has
/// length / 2 + 1 frequencies.
Var real_inverse_transform_gradient(const Var& gy, int64_t axis, int64_t length);

}  // namespace autograph
