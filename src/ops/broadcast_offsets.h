// Broadcasting by table: for reference loops that are not elementwise but still stretch some of their inputs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace autograph {

/// For every element of a tensor of extents `to`, in order: the offset of the element of a tensor of extents `from`
/// that it sees. `from` must broadcast to `to`; leading ones of `from` beyond the rank of `to` are skipped.
inline std::vector<int64_t> broadcast_offsets(std::span<const int64_t> from, std::span<const int64_t> to) {
  while (from.size() > to.size()) from = from.subspan(1);
  std::vector<int64_t> strides(to.size(), 0);
  int64_t stride = 1;
  for (size_t back = 1; back <= from.size(); ++back) {
    const int64_t extent = from[from.size() - back];
    strides[to.size() - back] = extent == 1 ? 0 : stride;
    stride *= extent;
  }
  std::vector<int64_t> offsets{0};
  for (size_t axis = 0; axis < to.size(); ++axis) {
    std::vector<int64_t> longer;
    longer.reserve(offsets.size() * static_cast<size_t>(to[axis]));
    for (const int64_t base : offsets) {
      for (int64_t i = 0; i < to[axis]; ++i) longer.push_back(base + i * strides[axis]);
    }
    offsets = std::move(longer);
  }
  return offsets;
}

}  // namespace autograph
