#include "runtime/observe/row_major.h"

#include <cstring>

namespace autograph {

// All layouts are [N, blocks of channels, places, channels of a block], with one block where channels lie last and
// blocks of one channel in row-major order.
Tensor to_row_major(DType dtype, const Dims& dims, Layout layout, const void* data) {
  Tensor result = Tensor::empty(dtype, dims);
  if (layout == Layout::row_major) {
    std::memcpy(result.mutable_raw(), data, result.size_bytes());
    return result;
  }
  const int64_t channels = dims[1];
  const int64_t block = layout == Layout::channels_last ? channels : channel_block(layout);
  const int64_t padded = padded_dims(layout, dims)[1];
  int64_t places = 1;
  for (size_t axis = 2; axis < dims.size(); ++axis) places *= dims[axis];
  const size_t size = element_size(dtype);
  auto* to = static_cast<char*>(result.mutable_raw());
  const auto* from = static_cast<const char*>(data);
  for (int64_t n = 0; n < dims[0]; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t first = (n * padded + c / block * block) * places + c % block;
      for (int64_t place = 0; place < places; ++place, to += size) {
        std::memcpy(to, from + static_cast<size_t>(first + place * block) * size, size);
      }
    }
  }
  return result;
}

}  // namespace autograph
