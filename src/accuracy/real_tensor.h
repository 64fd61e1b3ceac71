// Tensors of any real dtype as f64 and back, for the arithmetic of scales.
#pragma once

#include "autograph/tensor.h"

namespace autograph {

/// Neither strings nor complex numbers.
bool is_real(DType dtype);

/// The same elements as f64; the tensor itself where it is f64.
Tensor as_f64(const Tensor& tensor);

/// `x` moved by `delta[i]` each, in the dtype of `x`: integers to the nearest one they have, booleans past the middle.
/// Infinities, NaN and elements with a delta that is not finite stay.
Tensor moved_by(const Tensor& x, const std::vector<double>& delta);

}  // namespace autograph
