// Comparing values: NaN equals NaN, infinities equal themselves, strings and integers exactly.
#pragma once

#include <string>
#include <vector>

#include "autograph/tensor.h"

namespace autograph {

/// How far floats may differ: |a - e| <= atol + rtol * |e| + share * the largest finite |e| of the tensor.
struct FloatTolerance {
  double rtol = 1e-4;
  double atol = 1e-5;
  double share = 0;
};

/// "" when equal within tolerance, else the first difference in words.
std::string difference(const Datum& actual, const Datum& expected, const FloatTolerance& tolerance = {});

/// As difference(), over lists of the same length.
std::string difference(const std::vector<Datum>& actual, const std::vector<Datum>& expected,
                       const FloatTolerance& tolerance = {});

}  // namespace autograph
