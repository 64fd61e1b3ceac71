#include "ops/shape/copy_elements.h"

#include <algorithm>
#include <cstring>

namespace autograph {

std::vector<int64_t> dense_strides(std::span<const int64_t> dims) {
  std::vector<int64_t> strides(dims.size());
  // Beside an extent of 0 the others may be as large as they like: their product would overflow.
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return strides;
  int64_t stride = 1;
  for (size_t axis = dims.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= dims[axis];
  }
  return strides;
}

void copy_all(const TensorView& from, const TensorView& to) { copy_run(from, 0, to, 0, from.num_elements()); }

void copy_run(const TensorView& from, int64_t from_start, const TensorView& to, int64_t to_start, int64_t count) {
  if (count == 0) return;
  if (from.dtype() == DType::string) {
    std::copy_n(from.data<std::string>() + from_start, count, to.mutable_data<std::string>() + to_start);
    return;
  }
  const auto size = static_cast<int64_t>(element_size(from.dtype()));
  std::memcpy(to.mutable_data<char>() + to_start * size, from.data<char>() + from_start * size,
              static_cast<size_t>(count * size));
}

void copy_strided(const TensorView& from, const Strided& source, const TensorView& to, const Strided& target,
                  std::span<const int64_t> dims) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
  const size_t outer_rank = dims.empty() ? 0 : dims.size() - 1;
  const int64_t row = dims.empty() ? 1 : dims.back();
  const int64_t source_step = dims.empty() ? 0 : source.strides.back();
  const int64_t target_step = dims.empty() ? 0 : target.strides.back();
  dispatch_storage(from.dtype(), [&]<class T>() {
    const T* in = from.data<T>();
    T* out = to.mutable_data<T>();
    std::vector<int64_t> index(outer_rank, 0);
    int64_t source_at = source.start;
    int64_t target_at = target.start;
    while (true) {
      for (int64_t i = 0; i < row; ++i) out[target_at + i * target_step] = in[source_at + i * source_step];
      size_t axis = outer_rank;
      while (axis > 0) {
        --axis;
        source_at += source.strides[axis];
        target_at += target.strides[axis];
        if (++index[axis] < dims[axis]) break;
        source_at -= source.strides[axis] * dims[axis];
        target_at -= target.strides[axis] * dims[axis];
        index[axis] = 0;
        if (axis == 0) return;
      }
      if (outer_rank == 0) return;
    }
  });
}

void fill_with(const TensorView& to, const TensorView& value) {
  dispatch_storage(to.dtype(), [&]<class T>() {
    const T element = value.is_present() ? *value.data<T>() : T{};
    std::fill_n(to.mutable_data<T>(), to.num_elements(), element);
  });
}

}  // namespace autograph
