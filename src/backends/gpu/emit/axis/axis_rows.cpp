#include "backends/gpu/emit/axis/axis_rows.h"

#include <fmt/core.h>

#include "ops/shape/axes.h"

namespace autograph::gpu {

AxisRows::AxisRows(const Dims& dims, int64_t axis) {
  const auto at = static_cast<size_t>(front_axis(axis, static_cast<int64_t>(dims.size())));
  extent = dims[at];
  stride = row_major_strides(dims)[at];
  count = extent == 0 ? 0 : num_elements(dims) / extent;
}

std::string AxisRows::start(const IndexType& index, std::string_view row, int64_t length) const {
  return fmt::format("{0} / {1} * {2} + {0} % {1}", row, index.literal(stride), index.literal(length * stride));
}

}  // namespace autograph::gpu
