// What can be said of the elements of a tensor at a glance: for messages, tables and comparisons of runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "autograph/tensor.h"

namespace autograph {

/// Of real elements. Those that are NaN are counted, and in nothing else.
struct Statistics {
  int64_t count = 0;         ///< Elements.
  int64_t num_nan = 0;       ///< Of these NaN.
  int64_t num_infinite = 0;  ///< Of these infinite, which are in what follows.
  double min = 0;            ///< 0, as the rest, where there is no element that is a number.
  double max = 0;
  double mean = 0;
  double rms = 0;  ///< Root of the mean of squares.
  /// Is there an element that is not NaN?
  bool has_numbers() const { return count > num_nan; }
};

/// One pass over the elements; nothing for strings and complex numbers.
std::optional<Statistics> statistics_of(const TensorView& tensor);

/// "min -1, max 3, mean 0.5, rms 1.2, 2 NaN, 1 infinite", the last two where there are any; "no elements".
std::string to_string(const Statistics& statistics);

}  // namespace autograph
