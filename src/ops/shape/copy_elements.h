// Moving elements of any dtype without looking at them: the one place that knows strings must be assigned and
// everything else is bytes. Every op that only moves elements goes through it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "autograph/tensor.h"
#include "base/check.h"

namespace autograph {

/// N raw bytes: the element of any dtype of that size. Made of chars, so that it may alias every type.
template <size_t N>
struct ElementBytes {
  unsigned char bytes[N];
};

/// Calls `f.template operator()<T>()` with a copyable T that stands for the elements of `dtype`.
template <class F>
void dispatch_storage(DType dtype, F&& f) {
  if (dtype == DType::string) return f.template operator()<std::string>();
  switch (element_size(dtype)) {
    case 1: return f.template operator()<ElementBytes<1>>();
    case 2: return f.template operator()<ElementBytes<2>>();
    case 4: return f.template operator()<ElementBytes<4>>();
    case 8: return f.template operator()<ElementBytes<8>>();
    case 16: return f.template operator()<ElementBytes<16>>();
    default: AG_CHECK(false, "dtype {} has no storage type", to_string(dtype));
  }
}

/// Elements between neighbours along each axis of a dense tensor; zeros when it has no elements, whatever its extents.
std::vector<int64_t> dense_strides(std::span<const int64_t> dims);

/// Copies all elements of `from` to `to` in order; both have the same dtype and number of elements.
void copy_all(const TensorView& from, const TensorView& to);

/// Copies `count` neighbouring elements from position `from_start` to position `to_start`.
void copy_run(const TensorView& from, int64_t from_start, const TensorView& to, int64_t to_start, int64_t count);

/// One side of a strided copy: the position of element (i0, i1, ...) is start + sum of i_k * strides[k].
struct Strided {
  int64_t start = 0;                  ///< Position of the first element.
  std::vector<int64_t> strides = {};  ///< One per axis, in elements; 0 repeats, negative walks backwards.
};

/// Copies a block of extents `dims`. All positions reached must lie inside the tensors.
void copy_strided(const TensorView& from, const Strided& source, const TensorView& to, const Strided& target,
                  std::span<const int64_t> dims);

/// Sets every element of `to` to element 0 of `value`, or to zero ("" for strings) when `value` is absent.
void fill_with(const TensorView& to, const TensorView& value);

}  // namespace autograph
