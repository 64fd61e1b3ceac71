// A tensor seen along one axis: [outer, extent, inner].
#pragma once

#include <algorithm>
#include <cstdint>

#include "autograph/kernel.h"

namespace autograph {

/// Work along an axis comes in units: rows when nothing follows the axis, else strips of neighbouring columns, short
/// enough for what is kept of them to stay in cache and for threads to share them.
struct AxisBlocks {
  static constexpr int64_t kStrip = 128;

  AxisBlocks(const Dims& dims, int64_t axis) {
    if (axis < 0) axis += static_cast<int64_t>(dims.size());
    extent = dims[static_cast<size_t>(axis)];
    for (size_t a = 0; a < dims.size(); ++a) {
      if (static_cast<int64_t>(a) < axis) outer *= dims[a];
      if (static_cast<int64_t>(a) > axis) inner *= dims[a];
    }
  }

  int64_t elements() const { return outer * extent * inner; }
  int64_t strips() const { return (inner + kStrip - 1) / kStrip; }
  int64_t units() const { return outer * strips(); }

  /// Calls visit(block, column, count) for strips [begin, end): columns [column, column + count) of block `block`.
  template <class Visit>
  void for_strips(int64_t begin, int64_t end, const Visit& visit) const {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t column = unit % strips() * kStrip;
      visit(unit / strips(), column, std::min(kStrip, inner - column));
    }
  }

  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;
};

}  // namespace autograph
