#include "ops/random/fill_philox.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

constexpr int64_t kWordsPerBlock = 4;
constexpr int64_t kMaxBlock = std::numeric_limits<uint32_t>::max();

int64_t words_of(DType dtype, int64_t elements) { return dtype == DType::f64 ? 2 * elements : elements; }

// Calls `take(i, word)` for words begin .. end - 1; `begin` is where a block begins.
template <class Take>
void for_words(const PhiloxStream& stream, int64_t begin, int64_t end, const Take& take) {
  for (int64_t first = begin; first < end; first += kWordsPerBlock) {
    const auto words = stream.block(static_cast<uint32_t>(first / kWordsPerBlock));
    for (int64_t k = 0; k < std::min(kWordsPerBlock, end - first); ++k) take(first + k, words[static_cast<size_t>(k)]);
  }
}

// Calls `take(i, u)` for uniform numbers as precise as a T.
template <class T, class Take>
void for_uniform(const PhiloxStream& stream, int64_t begin, int64_t end, const Take& take) {
  if constexpr (sizeof(T) == 4) {
    for_words(stream, begin, end, [&](int64_t i, uint32_t word) { take(i, unit_interval(word)); });
  } else {
    uint32_t high = 0;
    for_words(stream, 2 * begin, 2 * end, [&](int64_t i, uint32_t word) {
      if (i % 2 == 1) take(i / 2, unit_interval(high, word));
      high = word;
    });
  }
}

template <class T>
void fill_normal(const PhiloxStream& stream, T* y, int64_t begin, int64_t end) {
  double radius = 0;
  // An odd number of elements needs the second number of its last pair, too.
  for_uniform<T>(stream, begin, end + end % 2, [&](int64_t i, double u) {
    if (i % 2 == 0) {
      radius = std::sqrt(-2 * std::log(1 - u));
      return;
    }
    const double angle = 2 * std::numbers::pi * u;
    y[i - 1] = static_cast<T>(radius * std::cos(angle));
    if (i < end) y[i] = static_cast<T>(radius * std::sin(angle));
  });
}

}  // namespace

PhiloxStream philox_stream(const Attributes& attributes, const TensorView& seed, const TensorView& step) {
  return {static_cast<uint64_t>(*seed.data<int64_t>()), static_cast<uint64_t>(*step.data<int64_t>()),
          static_cast<uint32_t>(attributes.integer("id"))};
}

void check_philox_size(const TensorView& y) {
  const int64_t words = words_of(y.dtype(), y.num_elements());
  AG_CHECK_USER((words - 1) / kWordsPerBlock <= kMaxBlock, BudgetError,
                "[philox] shape: {} words are more than a step has", words);
}

void fill_philox(const PhiloxStream& stream, const Attributes& attributes, const TensorView& y, int64_t begin,
                 int64_t end) {
  const std::string& distribution = attributes.text("distribution");
  if (distribution == "bits") {
    auto* words = y.mutable_data<uint32_t>();
    return for_words(stream, begin, end, [&](int64_t i, uint32_t word) { words[i] = word; });
  }
  dispatch<TypeList<float, double>>(y.dtype(), [&]<class T>(TypeTag<T>) {
    T* elements = y.mutable_data<T>();
    if (distribution == "normal") return fill_normal(stream, elements, begin, end);
    for_uniform<T>(stream, begin, end, [&](int64_t i, double u) { elements[i] = static_cast<T>(u); });
  });
}

}  // namespace autograph
