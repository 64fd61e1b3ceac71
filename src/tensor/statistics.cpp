#include "autograph/statistics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tensor/element_types.h"

namespace autograph {
namespace {

using RealTypes = Concat<NumericTypes, SmallTypes, TypeList<bool>>;

template <class T>
Statistics measure(const T* x, int64_t count) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Statistics result{.count = count, .min = kInfinity, .max = -kInfinity};
  double sum = 0;
  double squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(static_cast<ComputeType<T>>(x[i]));
    if (std::isnan(value)) {
      ++result.num_nan;
      continue;
    }
    result.num_infinite += std::isinf(value) ? 1 : 0;
    result.min = std::min(result.min, value);
    result.max = std::max(result.max, value);
    sum += value;
    squares += value * value;
  }
  if (!result.has_numbers()) {
    result.min = result.max = 0;
    return result;
  }
  const auto numbers = static_cast<double>(count - result.num_nan);
  result.mean = sum / numbers;
  result.rms = std::sqrt(squares / numbers);
  return result;
}

}  // namespace

std::optional<Statistics> statistics_of(const TensorView& tensor) {
  std::optional<Statistics> result;
  try_dispatch(RealTypes{}, tensor.dtype(),
               [&]<class T>(TypeTag<T>) { result = measure(tensor.data<T>(), tensor.num_elements()); });
  return result;
}

std::string to_string(const Statistics& statistics) {
  if (statistics.count == 0) return "no elements";
  std::string text = statistics.has_numbers()
                         ? fmt::format("min {:.6g}, max {:.6g}, mean {:.6g}, rms {:.6g}", statistics.min,
                                       statistics.max, statistics.mean, statistics.rms)
                         : "no numbers";
  if (statistics.num_nan > 0) text += fmt::format(", {} NaN", statistics.num_nan);
  if (statistics.num_infinite > 0) text += fmt::format(", {} infinite", statistics.num_infinite);
  return text;
}

}  // namespace autograph
