// How far two results are apart.
#pragma once

#include <string>
#include <vector>

#include "autograph/tensor.h"

namespace autograph {

/// What may differ.
struct Tolerance {
  double rtol = 1e-3;  ///< Relative to the expected element.
  /// Absolute; negative: `share` of the element's scale where scales are known, else of the largest expected magnitude
  /// of the tensor.
  double atol = -1;
  double share = 1e-4;
  double byte_steps = 0;  ///< By how much 8-bit integers may differ.
};

/// The outcome of a comparison.
struct Difference {
  bool ok = true;          ///< Every element within tolerance.
  double max_abs = 0;      ///< Largest |actual - expected|.
  double max_rel = 0;      ///< max_abs divided by the largest |expected| of the tensor (as it is, when that is 0).
  int64_t num_bad = 0;     ///< Elements out of tolerance.
  int64_t first_bad = -1;  ///< The first of them, in row-major order; -1: none, or all of the tensor.
  std::string why;         ///< First thing that is wrong, "" when ok.
};

/// Compares element by element: floats fail where |actual - expected| > atol + rtol * |expected|; NaN equals NaN and
/// infinities equal themselves; all other dtypes must be equal, 8-bit integers up to `byte_steps`. Dtypes, shapes and
/// kinds of value must be the same.
Difference compare_values(const Datum& actual, const Datum& expected, const Tolerance& tolerance);

/// The same where it is known how large the rounding errors of each element are: `scale` (f64, dims of `expected`) is
/// about the error of an element when every term of every sum on the way is off by a relative 1. Elements, those of
/// integers too, fail where |actual - expected| > share * scale + rtol * |expected|. An absent scale: results are exact
/// but for rtol.
Difference compare_values(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance,
                          const Tensor& scale);

/// The worst over lists: the largest differences of all, and the first thing that is wrong. Lists of different lengths
/// differ.
Difference compare_all(const std::vector<Datum>& actual, const std::vector<Datum>& expected,
                       const Tolerance& tolerance);

/// The largest differences of a list, and the first thing that is wrong, "in WHAT NUMBER: ...".
Difference worst_of(const std::vector<Difference>& differences, const char* what);

}  // namespace autograph
