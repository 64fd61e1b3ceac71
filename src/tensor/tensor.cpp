#include "autograph/tensor.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/checked_int.h"
#include "base/hash.h"
#include "tensor/element_types.h"

namespace autograph {

Tensor Tensor::empty(DType dtype, Dims dims, const Memory* memory) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.num_elements_ = checked_product(dims, "tensor");
  const int64_t bytes = checked_mul(tensor.num_elements_, static_cast<int64_t>(element_size(dtype)), "tensor");
  tensor.dims_ = std::move(dims);
  if (dtype == DType::string) {
    AG_CHECK_USER(!memory, TypeError, "[tensor] memory: strings are kept on the host alone, asked for {}",
                  memory->name());
    auto strings = std::make_shared<std::vector<std::string>>(static_cast<size_t>(tensor.num_elements_));
    void* const data = strings->data();
    tensor.buffer_ = Buffer(nullptr, data, static_cast<size_t>(bytes), std::move(strings));
  } else {
    tensor.buffer_ = Buffer::allocate(static_cast<size_t>(bytes), memory);
  }
  return tensor;
}

Tensor Tensor::zeros(DType dtype, Dims dims) {
  Tensor tensor = empty(dtype, std::move(dims));
  if (dtype != DType::string) std::memset(tensor.mutable_raw(), 0, tensor.size_bytes());
  return tensor;
}

template <class T>
// NOLINTNEXTLINE(performance-unnecessary-value-param): it is moved, which the check does not see in a template
Tensor Tensor::of(Dims dims, const std::vector<T>& values) {
  Tensor tensor = empty(kDTypeOf<T>, std::move(dims));
  AG_CHECK_USER(tensor.num_elements_ == static_cast<int64_t>(values.size()), ShapeError,
                "[tensor] values: expected {} for shape {}, got {}", tensor.num_elements_, to_string(tensor.dims_),
                values.size());
  std::copy(values.begin(), values.end(), static_cast<T*>(tensor.mutable_raw()));
  return tensor;
}

#define AG_INSTANTIATE(T) template Tensor Tensor::of<T>(Dims, const std::vector<T>&);
AG_INSTANTIATE(float)
AG_INSTANTIATE(double)
AG_INSTANTIATE(Half)
AG_INSTANTIATE(BFloat16)
AG_INSTANTIATE(int8_t)
AG_INSTANTIATE(int16_t)
AG_INSTANTIATE(int32_t)
AG_INSTANTIATE(int64_t)
AG_INSTANTIATE(uint8_t)
AG_INSTANTIATE(uint16_t)
AG_INSTANTIATE(uint32_t)
AG_INSTANTIATE(uint64_t)
AG_INSTANTIATE(bool)
AG_INSTANTIATE(std::string)
AG_INSTANTIATE(std::complex<float>)
AG_INSTANTIATE(std::complex<double>)
#undef AG_INSTANTIATE

Tensor Tensor::wrap(DType dtype, Dims dims, void* data, std::shared_ptr<const void> owner) {
  const size_t bytes = static_cast<size_t>(checked_product(dims, "tensor")) * element_size(dtype);
  return wrap(dtype, std::move(dims), Buffer(nullptr, data, bytes, std::move(owner)));
}

Tensor Tensor::wrap(DType dtype, Dims dims, Buffer buffer) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.num_elements_ = checked_product(dims, "tensor");
  tensor.dims_ = std::move(dims);
  tensor.buffer_ = std::move(buffer);
  return tensor;
}

Tensor Tensor::to(const Memory* memory) const {
  if (!is_present() || buffer_.memory() == memory) return *this;
  Tensor copy = empty(dtype_, dims_, memory);
  copy_bytes(copy.buffer_, buffer_, size_bytes());
  return copy;
}

Tensor Tensor::reshaped(Dims dims) const {
  const int64_t count = checked_product(dims, "reshape");
  AG_CHECK_USER(count == num_elements_, ShapeError, "[reshape] shape: {} has {} elements, {} has {}", to_string(dims),
                count, to_string(dims_), num_elements_);
  Tensor result = *this;
  result.dims_ = std::move(dims);
  return result;
}

Tensor Tensor::part(int64_t first, Dims dims) const {
  on_host();
  const int64_t count = checked_product(dims, "part");
  AG_CHECK_USER(first >= 0 && count <= num_elements_ && first <= num_elements_ - count, ShapeError,
                "[tensor] part: expected elements of {}, which has {}, got {} from {} on", to_string(dims_),
                num_elements_, count, first);
  const size_t size = element_size(dtype_);
  return wrap(dtype_, std::move(dims),
              buffer_.part(static_cast<size_t>(first) * size, static_cast<size_t>(count) * size));
}

Tensor Tensor::clone() const {
  if (!is_present()) return {};
  Tensor copy = empty(dtype_, dims_, buffer_.memory());
  if (dtype_ == DType::string) {
    const auto* strings = static_cast<const std::string*>(raw());
    std::copy(strings, strings + num_elements_, static_cast<std::string*>(copy.mutable_raw()));
  } else {
    copy_bytes(copy.buffer_, buffer_, size_bytes());
  }
  return copy;
}

std::vector<int64_t> Tensor::to_i64() const {
  std::vector<int64_t> values(static_cast<size_t>(num_elements_));
  const bool found =
      try_dispatch(Concat<IntegerTypes, TypeList<bool, Int4, UInt4, Int2, UInt2>>{}, dtype_, [&]<class T>(TypeTag<T>) {
        const T* source = static_cast<const T*>(raw());
        for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(source[i]);
      });
  AG_CHECK_USER(found, TypeError, "[tensor] dtype: expected integers, got {}", to_string(dtype_));
  return values;
}

std::vector<double> Tensor::to_f64() const {
  std::vector<double> values(static_cast<size_t>(num_elements_));
  const bool found = try_dispatch(Concat<NumericTypes, SmallTypes, TypeList<bool>>{}, dtype_, [&]<class T>(TypeTag<T>) {
    const T* source = static_cast<const T*>(raw());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<double>(static_cast<ComputeType<T>>(source[i]));
    }
  });
  AG_CHECK_USER(found, TypeError, "[tensor] dtype: expected real numbers, got {}", to_string(dtype_));
  return values;
}

bool Tensor::bitwise_equal(const Tensor& other) const {
  if (dtype_ != other.dtype_ || dims_ != other.dims_) return false;
  if (raw() == other.raw() || num_elements_ == 0) return true;
  if (dtype_ == DType::string) {
    const auto* a = static_cast<const std::string*>(raw());
    return std::equal(a, a + num_elements_, static_cast<const std::string*>(other.raw()));
  }
  return std::memcmp(raw(), other.raw(), size_bytes()) == 0;
}

Hash128 Tensor::content_hash() const {
  Hasher hasher;
  hasher.add(static_cast<int64_t>(dtype_)).add(rank());
  for (const int64_t d : dims_) hasher.add(d);
  if (dtype_ == DType::string) {
    const auto* strings = static_cast<const std::string*>(raw());
    for (int64_t i = 0; i < num_elements_; ++i) hasher.add(strings[i]);
  } else if (num_elements_ > 0) {
    hasher.add(hash_bytes(raw(), size_bytes()));
  }
  return hasher.finish();
}

void Tensor::check_element(DType asked) const {
  AG_CHECK_USER(asked == dtype_, TypeError, "[tensor] element type: asked for {}, the tensor holds {}",
                to_string(asked), to_string(dtype_));
}

void Tensor::refuse_access() const {
  throw DeviceError(fmt::format(
      "[tensor] memory: the elements of {} are in the memory of '{}', which the host cannot read; copy them "
      "with to_host()",
      to_string(type()), buffer_.memory()->name()));
}

Datum::Datum(std::vector<Datum> sequence) : value_(std::make_shared<std::vector<Datum>>(std::move(sequence))) {}

const Tensor& Datum::tensor() const {
  AG_CHECK_USER(is_tensor(), TypeError, "[datum] kind: expected a tensor, got {}",
                is_sequence() ? "a sequence" : "nothing");
  return std::get<Tensor>(value_);
}

const std::vector<Datum>& Datum::sequence() const {
  AG_CHECK_USER(is_sequence(), TypeError, "[datum] kind: expected a sequence, got {}",
                is_tensor() ? "a tensor" : "nothing");
  return *std::get<std::shared_ptr<std::vector<Datum>>>(value_);
}

std::vector<Datum> Datum::take_sequence() && {
  if (!is_sequence()) return sequence();  // throws
  const Datum taken = std::exchange(*this, Datum());
  const auto& list = std::get<std::shared_ptr<std::vector<Datum>>>(taken.value_);
  if (list.use_count() > 1) return *list;
  std::atomic_thread_fence(std::memory_order_acquire);  // behind what the last other holder read
  return std::move(*list);
}

}  // namespace autograph
