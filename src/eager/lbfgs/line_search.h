// A step along a direction that meets the strong Wolfe conditions.
#pragma once

#include <cstdint>
#include <vector>

#include "base/function_ref.h"

namespace autograph {

/// A point on the line.
struct LinePoint {
  double at = 0;                      ///< How far along the direction.
  double value = 0;                   ///< Of the function.
  double slope = 0;                   ///< Its derivative along the direction.
  std::vector<double> gradient = {};  ///< The whole one.
};

/// Looks at most `max_tries` times behind the first, which is `first` away from `start`; gives the best point found:
/// brackets a minimum and closes in on it by cubic interpolation, as torch.optim.LBFGS does (Nocedal and Wright,
/// Numerical Optimization, algorithms 3.5 and 3.6). `shortest`: brackets that are no longer are not cut any further.
LinePoint strong_wolfe(FunctionRef<LinePoint(double)> evaluate, const LinePoint& start, double first, double shortest,
                       int64_t max_tries);

}  // namespace autograph
