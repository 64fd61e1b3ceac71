// Where in memory the elements are that a reduction combines: runs of neighbours, cut out of a row-major tensor.
#pragma once

#include <cstdint>
#include <vector>

#include "autograph/kernel.h"

namespace autograph {

/// A reduction as runs of neighbouring elements. Group g combines the runs at start(g) + offsets[i]: all their elements
/// to one when the innermost axis is reduced, else element by element to a run.
struct ReducedAxes {
  ReducedAxes(const Dims& dims, const std::vector<bool>& is_reduced);

  /// Offset of a group's first element; groups are in the order of the results.
  int64_t start(int64_t group) const {
    int64_t at = 0;
    for (size_t a = extents.size(); a-- > 1; group /= extents[a]) at += group % extents[a] * strides[a];
    return at + group * strides[0];
  }
  /// How many elements make one result.
  int64_t combined() const { return static_cast<int64_t>(offsets.size()) * (is_row ? run : 1); }

  int64_t groups = 1;
  int64_t run = 1;               ///< Elements of a run.
  bool is_row = true;            ///< Is a run combined to one element?
  std::vector<int64_t> offsets;  ///< Of a group's runs, ascending.
  std::vector<int64_t> extents;  ///< Of the axes that tell the groups apart, outermost first; at least one.
  std::vector<int64_t> strides;  ///< Parallel to extents.
};

/// Which axes `axes` names, one flag for each of `rank`.
std::vector<bool> axis_flags(const std::vector<int64_t>& axes, size_t rank);

}  // namespace autograph
