// The median of measurements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace autograph {

/// The middle value, of an even number of them the upper one; `values` must not be empty.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace autograph
