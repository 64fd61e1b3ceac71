#include "autograph/tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/checked_int.h"
#include "base/hash.h"
#include "tensor/element_types.h"
#include "tensor/spare_bytes.h"

namespace autograph {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr size_t kHugePage = size_t{2} << 20;

// Large pages where the system gives them: a walk through weights misses the translation cache less, and memory is
// there after fewer page faults. What does not fill a large page stays in small ones, so that no memory is wasted.
void ask_for_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] size_t size) {
#ifdef MADV_HUGEPAGE
  ::madvise(memory, size / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
}

std::shared_ptr<void> allocate_bytes(size_t size) {
  const bool is_large = size >= kHugePage;
  const std::align_val_t alignment = is_large ? std::align_val_t{kHugePage} : kAlignment;
  void* memory = ::operator new(size + kSpareBytes, alignment, std::nothrow);
  AG_CHECK_USER(memory != nullptr, BudgetError, "[tensor] memory: {} bytes are not available", size);
  if (is_large) ask_for_large_pages(memory, size);
  return {memory, [alignment](void* p) { ::operator delete(p, alignment); }};
}

}  // namespace

Tensor Tensor::empty(DType dtype, Dims dims) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.num_elements_ = checked_product(dims, "tensor");
  const int64_t bytes = checked_mul(tensor.num_elements_, static_cast<int64_t>(element_size(dtype)), "tensor");
  tensor.dims_ = std::move(dims);
  if (dtype == DType::string) {
    auto strings = std::make_shared<std::vector<std::string>>(static_cast<size_t>(tensor.num_elements_));
    tensor.data_ = strings->data();
    tensor.owner_ = std::move(strings);
  } else {
    auto memory = allocate_bytes(static_cast<size_t>(bytes));
    tensor.data_ = memory.get();
    tensor.owner_ = std::move(memory);
  }
  return tensor;
}

Tensor Tensor::zeros(DType dtype, Dims dims) {
  Tensor tensor = empty(dtype, std::move(dims));
  if (dtype != DType::string) std::memset(tensor.data_, 0, tensor.size_bytes());
  return tensor;
}

template <class T>
// NOLINTNEXTLINE(performance-unnecessary-value-param): it is moved, which the check does not see in a template
Tensor Tensor::of(Dims dims, const std::vector<T>& values) {
  Tensor tensor = empty(kDTypeOf<T>, std::move(dims));
  AG_CHECK_USER(tensor.num_elements_ == static_cast<int64_t>(values.size()), ShapeError,
                "[tensor] values: expected {} for shape {}, got {}", tensor.num_elements_, to_string(tensor.dims_),
                values.size());
  std::copy(values.begin(), values.end(), static_cast<T*>(tensor.data_));
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
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.num_elements_ = checked_product(dims, "tensor");
  tensor.dims_ = std::move(dims);
  tensor.data_ = data;
  tensor.owner_ = std::move(owner);
  return tensor;
}

Tensor Tensor::reshaped(Dims dims) const {
  const int64_t count = checked_product(dims, "reshape");
  AG_CHECK_USER(count == num_elements_, ShapeError, "[reshape] shape: {} has {} elements, {} has {}", to_string(dims),
                count, to_string(dims_), num_elements_);
  Tensor result = *this;
  result.dims_ = std::move(dims);
  return result;
}

Tensor Tensor::clone() const {
  if (!is_present()) return {};
  Tensor copy = empty(dtype_, dims_);
  if (dtype_ == DType::string) {
    const auto* strings = static_cast<const std::string*>(data_);
    std::copy(strings, strings + num_elements_, static_cast<std::string*>(copy.data_));
  } else if (num_elements_ > 0) {
    std::memcpy(copy.data_, data_, size_bytes());
  }
  return copy;
}

std::vector<int64_t> Tensor::to_i64() const {
  std::vector<int64_t> values(static_cast<size_t>(num_elements_));
  const bool found =
      try_dispatch(Concat<IntegerTypes, TypeList<bool, Int4, UInt4, Int2, UInt2>>{}, dtype_, [&]<class T>(TypeTag<T>) {
        const T* source = static_cast<const T*>(data_);
        for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(source[i]);
      });
  AG_CHECK_USER(found, TypeError, "[tensor] dtype: expected integers, got {}", to_string(dtype_));
  return values;
}

std::vector<double> Tensor::to_f64() const {
  std::vector<double> values(static_cast<size_t>(num_elements_));
  const bool found = try_dispatch(Concat<NumericTypes, SmallTypes, TypeList<bool>>{}, dtype_, [&]<class T>(TypeTag<T>) {
    const T* source = static_cast<const T*>(data_);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<double>(static_cast<ComputeType<T>>(source[i]));
    }
  });
  AG_CHECK_USER(found, TypeError, "[tensor] dtype: expected real numbers, got {}", to_string(dtype_));
  return values;
}

bool Tensor::bitwise_equal(const Tensor& other) const {
  if (dtype_ != other.dtype_ || dims_ != other.dims_) return false;
  if (data_ == other.data_ || num_elements_ == 0) return true;
  if (dtype_ == DType::string) {
    const auto* a = static_cast<const std::string*>(data_);
    return std::equal(a, a + num_elements_, static_cast<const std::string*>(other.data_));
  }
  return std::memcmp(data_, other.data_, size_bytes()) == 0;
}

Hash128 Tensor::content_hash() const {
  Hasher hasher;
  hasher.add(static_cast<int64_t>(dtype_)).add(rank());
  for (const int64_t d : dims_) hasher.add(d);
  if (dtype_ == DType::string) {
    const auto* strings = static_cast<const std::string*>(data_);
    for (int64_t i = 0; i < num_elements_; ++i) hasher.add(strings[i]);
  } else if (num_elements_ > 0) {
    hasher.add(hash_bytes(data_, size_bytes()));
  }
  return hasher.finish();
}

void Tensor::check_element(DType asked) const {
  AG_CHECK_USER(asked == dtype_, TypeError, "[tensor] element type: asked for {}, the tensor holds {}",
                to_string(asked), to_string(dtype_));
}

const Tensor& Datum::tensor() const {
  AG_CHECK_USER(is_tensor(), TypeError, "[datum] kind: expected a tensor, got {}",
                is_sequence() ? "a sequence" : "nothing");
  return std::get<Tensor>(value_);
}

const std::vector<Datum>& Datum::sequence() const {
  AG_CHECK_USER(is_sequence(), TypeError, "[datum] kind: expected a sequence, got {}",
                is_tensor() ? "a tensor" : "nothing");
  return std::get<std::vector<Datum>>(value_);
}

}  // namespace autograph
