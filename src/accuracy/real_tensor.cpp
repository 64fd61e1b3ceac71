#include "accuracy/real_tensor.h"

#include <cmath>
#include <limits>

#include "tensor/element_types.h"

namespace autograph {
namespace {

template <class T>
T moved(const T& x, double delta) {
  const auto value = static_cast<double>(static_cast<ComputeType<T>>(x));
  if (!std::isfinite(value) || !std::isfinite(delta)) return x;
  if constexpr (std::is_same_v<T, bool>) {
    return value + delta >= 0.5;
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value + delta);
  } else if constexpr (kIsFloat<T>) {
    return T(static_cast<float>(value + delta));
  } else if constexpr (kIsSmallInt<T>) {
    return x;  // fewer values than a step away from one another
  } else {
    const double rounded = std::nearbyint(value + delta);
    // The largest i64 and u64 are no doubles: what reaches them stays.
    if (rounded <= static_cast<double>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
    if (rounded >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return delta == 0 ? x : static_cast<T>(rounded);
  }
}

}  // namespace

bool is_real(DType dtype) {
  return dtype != DType::undefined && dtype != DType::string && !dtypes::kComplex.contains(dtype);
}

Tensor as_f64(const Tensor& tensor) {
  return tensor.dtype() == DType::f64 ? tensor : Tensor::of<double>(tensor.dims(), tensor.to_f64());
}

Tensor moved_by(const Tensor& x, const std::vector<double>& delta) {
  Tensor result = Tensor::empty(x.dtype(), x.dims());
  dispatch<Concat<NumericTypes, SmallTypes, TypeList<bool>>>(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* from = x.data<T>();
    T* to = result.mutable_data<T>();
    for (size_t i = 0; i < delta.size(); ++i) to[i] = moved(from[i], delta[i]);
  });
  return result;
}

}  // namespace autograph
