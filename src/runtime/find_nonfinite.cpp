#include "runtime/find_nonfinite.h"

#include <cmath>

#include "tensor/element_types.h"

namespace autograph {

int64_t find_nonfinite(const TensorView& tensor) {
  int64_t found = -1;
  try_dispatch(FloatTypes{}, tensor.dtype(), [&]<class T>(TypeTag<T>) {
    const T* x = tensor.data<T>();
    for (int64_t i = 0; i < tensor.num_elements() && found < 0; ++i) {
      if (!std::isfinite(static_cast<double>(x[i]))) found = i;
    }
  });
  return found;
}

}  // namespace autograph
