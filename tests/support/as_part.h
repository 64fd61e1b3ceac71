// Tensors that lie where no allocator puts them: what takes parts of larger tensors must read them as it reads others.
#pragma once

#include <cstring>

#include "autograph/tensor.h"

namespace autograph {

/// The same elements between others, one element behind the beginning of a buffer. Strings and sequences as they are.
inline Datum as_part(const Datum& datum) {
  if (!datum.is_tensor() || datum.tensor().dtype() == DType::string) return datum;
  const Tensor& tensor = datum.tensor();
  Tensor whole = Tensor::zeros(tensor.dtype(), {tensor.num_elements() + 2});
  Tensor part = whole.part(1, tensor.dims());
  if (tensor.num_elements() > 0) std::memcpy(part.mutable_raw(), tensor.raw(), tensor.size_bytes());
  return part;
}

}  // namespace autograph
