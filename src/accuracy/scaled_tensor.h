// A tensor of the reference with the scale of its rounding errors, element by element.
#pragma once

#include <span>
#include <vector>

#include "autograph/op_def.h"

namespace autograph {

/// `value` as the reference computes it. Where every term of every sum on the way is off by one part in 1 / epsilon,
/// each on its own, an element is off by about epsilon * scale. An absent scale: the same bits however it is computed.
struct ScaledTensor {
  Tensor value;
  Tensor scale;  ///< f64, dims of `value`, no element negative; or absent.
};

/// What is supposed about errors.
struct ErrorModel {
  double epsilon = 1e-4;  ///< Relative error of a term. Steps (rounding, comparisons) are looked at this far around.
  bool exact = false;     ///< No kernel mixes the terms of neighbouring windows, as Winograd's convolutions do.
};

/// One node by the reference, with scales. `inputs`: absent values where an optional input is not given.
std::vector<ScaledTensor> run_scaled(const OpDef& op, const Attributes& attributes,
                                     std::span<const ScaledTensor> inputs, std::span<const Type> output_types,
                                     const ErrorModel& model);

}  // namespace autograph
