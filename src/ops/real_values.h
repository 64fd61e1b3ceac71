// Small parameter tensors (scales, biases, statistics) of any float dtype as f64, for reference loops.
#pragma once

#include <vector>

#include "autograph/tensor.h"
#include "tensor/element_types.h"

namespace autograph {

/// The elements of a real float tensor as f64; empty when the view is absent.
inline std::vector<double> real_values(const TensorView& view) {
  std::vector<double> values;
  if (!view.is_present()) return values;
  values.reserve(static_cast<size_t>(view.num_elements()));
  dispatch<FloatTypes>(view.dtype(), [&]<class T>(TypeTag<T>) {
    for (const T& element : view.elements<T>()) values.push_back(static_cast<double>(element));
  });
  return values;
}

/// Writes f64 values into a float tensor of as many elements, rounding once.
inline void store_reals(const std::vector<double>& values, const TensorView& view) {
  dispatch<FloatTypes>(view.dtype(), [&]<class T>(TypeTag<T>) {
    T* out = view.mutable_data<T>();
    for (size_t i = 0; i < values.size(); ++i) out[i] = static_cast<T>(values[i]);
  });
}

}  // namespace autograph
