// How inputs of different shapes walk along with an output: axes with strides, as few as possible.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/kernel_catalog.h"

namespace autograph::simd {

constexpr size_t kMaxInputs = 16;
constexpr size_t kMaxAxes = 8;

/// One axis of the output.
struct BroadcastAxis {
  int64_t extent = 1;
  std::array<int64_t, kMaxInputs> strides{};  ///< Of each input, in elements; 0 where it broadcasts.
};

/// The axes of output 0, innermost last, without extents of 1; neighbours through which every input walks evenly are
/// one. At least one axis. The call must have at most kMaxInputs inputs.
std::vector<BroadcastAxis> broadcast_axes(const KernelCall& call);

/// Walks over the positions of all axes but the last, in order, and keeps where each input is.
class RowCursor {
 public:
  /// Starts at row number `row`.
  RowCursor(const std::vector<BroadcastAxis>& axes, int64_t row);
  /// Offset of input k's element at the start of the row.
  int64_t offset(size_t k) const { return offsets_[k]; }
  /// To the next row.
  void advance();

 private:
  const std::vector<BroadcastAxis>& axes_;
  std::array<int64_t, kMaxAxes> index_{};
  std::array<int64_t, kMaxInputs> offsets_{};
};

}  // namespace autograph::simd
