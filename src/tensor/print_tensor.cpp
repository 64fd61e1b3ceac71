// Tensors as text for people.
#include <ostream>
#include <span>

#include "autograph/tensor.h"
#include "base/printable.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

using AllTypes =
    Concat<NumericTypes, SmallTypes, TypeList<bool, std::string, std::complex<float>, std::complex<double>>>;

// Elements shown at each end of an axis that is longer than both together and one more.
constexpr int64_t kShown = 3;

template <class T>
std::string element_text(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return quoted(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    return fmt::format("{:.6g}{:+.6g}i", value.real(), value.imag());
  } else if constexpr (kIsFloat<T>) {
    return fmt::format("{:.6g}", static_cast<double>(static_cast<ComputeType<T>>(value)));
  } else {
    return fmt::format("{}", static_cast<std::conditional_t<std::is_same_v<T, uint64_t>, uint64_t, int64_t>>(value));
  }
}

// Elements from `from` on, nested as the axes are.
template <class T>
std::string block_text(const T* from, std::span<const int64_t> dims) {
  if (dims.empty()) return element_text(*from);
  const std::span<const int64_t> inner = dims.subspan(1);
  int64_t step = 1;
  for (const int64_t extent : inner) step *= extent;
  const bool is_long = dims[0] > 2 * kShown + 1;
  std::string text = "{";
  for (int64_t i = 0; i < dims[0]; ++i) {
    if (i > 0) text += ", ";
    if (is_long && i == kShown) {
      text += "...";
      i = dims[0] - kShown - 1;
      continue;
    }
    text += block_text(from + i * step, inner);
  }
  return text + "}";
}

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor.is_present()) return "absent";
  std::string text = to_string(tensor.type()) + " ";
  if (tensor.num_elements() == 0) return text + "{}";
  if (tensor.raw() == nullptr) return text + "(released)";
  dispatch<AllTypes>(tensor.dtype(), [&]<class T>(TypeTag<T>) {
    text += block_text(static_cast<const T*>(tensor.raw()), tensor.dims());
  });
  return text;
}

std::ostream& operator<<(std::ostream& stream, const Tensor& tensor) { return stream << to_string(tensor); }

}  // namespace autograph
