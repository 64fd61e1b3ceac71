// A tensor as rows along one axis.
#pragma once

#include <string>
#include <string_view>

#include "backends/gpu/emit/text/index.h"

namespace autograph::gpu {

/// Rows of `extent` elements, `stride` apart.
struct AxisRows {
  AxisRows(const Dims& dims, int64_t axis);
  /// Where row `row` begins in a tensor whose extent along the axis is `length`.
  std::string start(const IndexType& index, std::string_view row, int64_t length) const;
  std::string start(const IndexType& index, std::string_view row) const { return start(index, row, extent); }
  int64_t extent = 0;
  int64_t stride = 1;
  int64_t count = 0;
};

}  // namespace autograph::gpu
