#include "tensor/size_of.h"

#include "base/check.h"

namespace autograph {

size_t size_of(const Type& type) {
  auto bytes = static_cast<int64_t>(element_size(type.dtype()));
  bool zero = false;
  bool fits = true;
  for (const Dim& dim : type.shape().dims()) {
    zero = zero || dim.value() == 0;
    if (fits && dim.value() > 0) fits = !__builtin_mul_overflow(bytes, dim.value(), &bytes);
  }
  if (zero) return 0;
  AG_CHECK_USER(fits, BudgetError, "[memory] tensor: {} is more than 64 bits can address", to_string(type));
  return static_cast<size_t>(bytes);
}

size_t size_of(const Type& type, Layout layout) {
  if (channel_block(layout) == 1) return size_of(type);
  return size_of(Type(type.dtype(), Shape::of(padded_dims(layout, type.shape().static_dims()))));
}

}  // namespace autograph
