// How far two results are apart.
#pragma once

#include <string>
#include <vector>

#include "autograph/tensor.h"

namespace autograph {

/// What may differ.
struct Tolerance {
  double rtol = 1e-3;  ///< Relative to the expected element.
  double atol = -1;    ///< Absolute; negative: `share` of the largest expected magnitude of the tensor.
  double share = 1e-4;
  double byte_steps = 0;  ///< By how much 8-bit integers may differ.
};

/// The outcome of a comparison.
struct Difference {
  bool ok = true;       ///< Every element within tolerance.
  double max_abs = 0;   ///< Largest |actual - expected|.
  double max_rel = 0;   ///< max_abs divided by the largest |expected| of the tensor (as it is, when that is 0).
  int64_t num_bad = 0;  ///< Elements out of tolerance.
  std::string why;      ///< First thing that is wrong, "" when ok.
};

/// Compares element by element: floats fail where |actual - expected| > atol + rtol * |expected|; NaN equals NaN and
/// infinities equal themselves; all other dtypes must be equal, 8-bit integers up to `byte_steps`. Dtypes, shapes and
/// kinds of value must be the same.
Difference compare_values(const Datum& actual, const Datum& expected, const Tolerance& tolerance);

/// The worst over lists: the largest differences of all, and the first thing that is wrong. Lists of different lengths
/// differ.
Difference compare_all(const std::vector<Datum>& actual, const std::vector<Datum>& expected,
                       const Tolerance& tolerance);

}  // namespace autograph
