#include "runtime/find_nonfinite.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/element_types.h"

namespace autograph {
namespace {

// In a word of 64 bits: the bits of all exponents, and the lowest bit of each. An exponent of ones alone, which NaN and
// infinity have, carries into the sign when one is added, and no other does; nothing carries into the next element.
struct ExponentBits {
  uint64_t all;
  uint64_t lowest;
  uint64_t sign;
};

template <class T>
constexpr ExponentBits exponent_bits() {
  if constexpr (std::is_same_v<T, double>) return {0x7FF0000000000000, 0x0010000000000000, 0x8000000000000000};
  if constexpr (std::is_same_v<T, float>) return {0x7F8000007F800000, 0x0080000000800000, 0x8000000080000000};
  if constexpr (std::is_same_v<T, Half>) return {0x7C007C007C007C00, 0x0400040004000400, 0x8000800080008000};
  return {0x7F807F807F807F80, 0x0080008000800080, 0x8000800080008000};  // bf16
}

// Whole words only; four sums, so that no addition waits for the one before.
template <class T>
bool has_nonfinite(const char* bytes, size_t num_words) {
  constexpr ExponentBits kBits = exponent_bits<T>();
  constexpr size_t kLanes = 4;
  uint64_t found[kLanes] = {};
  const auto look = [&](size_t word, size_t lane) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes + word * sizeof(bits), sizeof(bits));
    found[lane] |= (bits & kBits.all) + kBits.lowest;
  };
  size_t word = 0;
  for (; word + kLanes <= num_words; word += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) look(word + lane, lane);
  }
  for (; word < num_words; ++word) look(word, 0);
  return ((found[0] | found[1] | found[2] | found[3]) & kBits.sign) != 0;
}

template <class T>
int64_t find_one_by_one(const T* x, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    if (!std::isfinite(static_cast<double>(x[i]))) return i;
  }
  return -1;
}

}  // namespace

// Blocks are asked whether there is one at all, which is as fast as memory; only one that has is looked through.
int64_t find_nonfinite(const TensorView& tensor) {
  int64_t found = -1;
  try_dispatch(FloatTypes{}, tensor.dtype(), [&]<class T>(TypeTag<T>) {
    constexpr int64_t kPerWord = sizeof(uint64_t) / sizeof(T);
    constexpr int64_t kBlock = 1024 * kPerWord;
    const T* x = tensor.data<T>();
    const int64_t whole = tensor.num_elements() / kPerWord * kPerWord;
    for (int64_t begin = 0; begin < whole && found < 0; begin += kBlock) {
      const int64_t end = std::min(begin + kBlock, whole);
      const auto num_words = static_cast<size_t>((end - begin) / kPerWord);
      if (has_nonfinite<T>(reinterpret_cast<const char*>(x + begin), num_words)) found = find_one_by_one(x, begin, end);
    }
    if (found < 0) found = find_one_by_one(x, whole, tensor.num_elements());
  });
  return found;
}

// Infinities are often there on purpose, as in masks; all of them are passed in search of a NaN.
Nonfinite find_worst(const TensorView& tensor) {
  const int64_t first = find_nonfinite(tensor);
  if (first < 0) return {};
  int64_t nan = -1;
  try_dispatch(FloatTypes{}, tensor.dtype(), [&]<class T>(TypeTag<T>) {
    const T* begin = tensor.data<T>();
    const T* end = begin + tensor.num_elements();
    const T* at = std::find_if(begin + first, end, [](T x) { return std::isnan(static_cast<double>(x)); });
    if (at != end) nan = at - begin;
  });
  return nan < 0 ? Nonfinite{first, false} : Nonfinite{nan, true};
}

}  // namespace autograph
