// Tensors: a dtype, concrete extents, and a shared buffer in row-major order without gaps.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "autograph/buffer.h"
#include "autograph/dtype_of.h"
#include "autograph/hash.h"
#include "autograph/shape.h"

namespace autograph {

/// A borrowed, contiguous, row-major block of elements. Cheap to copy; owns nothing, not even its dims. Kernels of a
/// device with memory of its own get views of that memory, which only they may follow.
class TensorView {
 public:
  /// An absent value: dtype undefined, no data.
  TensorView() = default;
  TensorView(DType dtype, std::span<const int64_t> dims, void* data) : dtype_(dtype), dims_(dims), data_(data) {
    // Beside an extent of 0 the others may be as large as they like: their product would overflow.
    for (const int64_t d : dims) num_elements_ = d == 0 ? 0 : num_elements_;
    for (const int64_t d : dims) num_elements_ = num_elements_ == 0 ? 0 : num_elements_ * d;
  }

  /// False for a missing optional input.
  bool is_present() const { return dtype_ != DType::undefined; }
  DType dtype() const { return dtype_; }
  std::span<const int64_t> dims() const { return dims_; }
  int64_t dim(int64_t axis) const { return dims_[static_cast<size_t>(axis)]; }
  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  int64_t num_elements() const { return num_elements_; }
  size_t size_bytes() const { return static_cast<size_t>(num_elements_) * element_size(dtype_); }
  /// First element; T must be the C++ type of dtype() (or char for raw bytes).
  template <class T>
  const T* data() const {
    return static_cast<const T*>(data_);
  }
  template <class T>
  T* mutable_data() const {
    return static_cast<T*>(data_);
  }
  void* raw() const { return data_; }
  /// The elements as a span.
  template <class T>
  std::span<const T> elements() const {
    return {data<T>(), static_cast<size_t>(num_elements_)};
  }

 private:
  DType dtype_ = DType::undefined;
  std::span<const int64_t> dims_;
  void* data_ = nullptr;
  int64_t num_elements_ = 1;
};

/// An owning handle; copies share the buffer. Elements are immutable by convention once a tensor is shared.
/// Elements that lie in the memory of a device can be copied; whatever else looks at them throws DeviceError.
class Tensor {
 public:
  /// An absent value.
  Tensor() = default;
  /// Zeros (empty strings); the buffer is 64-byte aligned. Throws ShapeError on negative or overflowing dims.
  static Tensor zeros(DType dtype, Dims dims);
  /// Uninitialised memory for every dtype but string, in `memory` (null: the host's). Throws as zeros(), BudgetError
  /// when there is no more memory, and TypeError for strings that are not on the host.
  static Tensor empty(DType dtype, Dims dims, const Memory* memory = nullptr);
  /// Copies `values`; throws ShapeError when their number is not the product of `dims`.
  template <class T>
  static Tensor of(Dims dims, const std::vector<T>& values);
  /// One element of rank 0.
  template <class T>
  static Tensor scalar(T value) {
    return of<T>({}, std::vector<T>{std::move(value)});
  }
  /// A one-dimensional i64 tensor: the form in which shapes and axes travel.
  static Tensor vector(const std::vector<int64_t>& values) {
    return of<int64_t>({static_cast<int64_t>(values.size())}, values);
  }
  /// Borrows `data`; `owner` keeps it alive (may be null when the caller does).
  static Tensor wrap(DType dtype, Dims dims, void* data, std::shared_ptr<const void> owner);
  /// Elements that lie at the beginning of `buffer`, on the host or not.
  static Tensor wrap(DType dtype, Dims dims, Buffer buffer);

  /// False for an absent value.
  bool is_present() const { return dtype_ != DType::undefined; }
  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  int64_t num_elements() const { return num_elements_; }
  size_t size_bytes() const { return static_cast<size_t>(num_elements_) * element_size(dtype_); }
  /// Tensor type with these dtype and dims.
  Type type() const { return {dtype_, Shape::of(dims_)}; }
  /// First element; throws TypeError unless T is the C++ type of dtype().
  template <class T>
  const T* data() const {
    check_element(kDTypeOf<T>);
    return static_cast<const T*>(raw());
  }
  template <class T>
  T* mutable_data() {
    check_element(kDTypeOf<T>);
    return static_cast<T*>(mutable_raw());
  }
  template <class T>
  std::span<const T> elements() const {
    return {data<T>(), static_cast<size_t>(num_elements_)};
  }
  const void* raw() const { return on_host(); }
  void* mutable_raw() { return on_host(); }
  /// Borrow as a view; valid while this tensor lives and is not assigned to.
  TensorView view() const { return {dtype_, dims_, on_host()}; }

  /// Where the elements are, on the host or not.
  const Buffer& buffer() const { return buffer_; }
  bool is_on_host() const { return buffer_.is_on_host(); }
  /// The same elements in `memory` (null: the host's): a copy, or this tensor where it is there already. Throws
  /// TypeError for strings.
  Tensor to(const Memory* memory) const;
  /// The same elements where the host can read them.
  Tensor to_host() const { return to(nullptr); }

  /// The same elements under other extents of equal product; throws ShapeError otherwise. Shares the buffer.
  Tensor reshaped(Dims dims) const;
  /// The elements from position `first` on, in row-major order, under extents `dims`; shares the buffer, which lies on
  /// the host. Throws ShapeError where there are fewer.
  Tensor part(int64_t first, Dims dims) const;
  /// A copy with a buffer of its own in the same memory.
  Tensor clone() const;
  /// Integer elements of any width as i64; throws TypeError for other dtypes.
  std::vector<int64_t> to_i64() const;
  /// Real elements of any dtype as f64; throws TypeError for strings and complex numbers.
  std::vector<double> to_f64() const;
  /// Same dtype, dims and bits (equal strings).
  bool bitwise_equal(const Tensor& other) const;
  /// Hash of dtype, dims and elements.
  Hash128 content_hash() const;

 private:
  void check_element(DType asked) const;
  void* on_host() const {
    if (!buffer_.is_on_host()) refuse_access();
    return buffer_.data();
  }
  [[noreturn]] void refuse_access() const;
  DType dtype_ = DType::undefined;
  Dims dims_;
  int64_t num_elements_ = 0;
  Buffer buffer_;
};

/// A value at run time: a tensor, a sequence of values, or nothing (an empty optional). Copies share their elements.
class Datum {
 public:
  /// Nothing.
  Datum() = default;
  Datum(Tensor tensor) : value_(std::move(tensor)) {}  // NOLINT: tensors are values
  Datum(std::vector<Datum> sequence);                  // NOLINT: lists are values

  bool is_present() const { return value_.index() != 0; }
  bool is_tensor() const { return value_.index() == 1; }
  bool is_sequence() const { return value_.index() == 2; }
  /// The tensor; throws TypeError when it is something else.
  const Tensor& tensor() const;
  /// The list; throws TypeError when it is something else.
  const std::vector<Datum>& sequence() const;
  /// The list to change: itself where nobody else holds it, else a copy.
  std::vector<Datum> take_sequence() &&;

 private:
  // Copies share the list, which none of them changes.
  std::variant<std::monostate, Tensor, std::shared_ptr<std::vector<Datum>>> value_;
};

/// "f32[2,3] {{1, 2, 3}, {4, 5, 6}}": floats with six significant digits, strings quoted; of long axes the three first
/// and last. "absent" for an absent value.
std::string to_string(const Tensor& tensor);
std::ostream& operator<<(std::ostream& stream, const Tensor& tensor);

}  // namespace autograph
