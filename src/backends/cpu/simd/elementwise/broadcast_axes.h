// How inputs of different shapes walk along with an output: axes with strides, as few as possible.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "autograph/layout.h"
#include "autograph/shape.h"

namespace autograph::simd {

constexpr size_t kMaxInputs = 16;
constexpr size_t kMaxAxes = 8;

/// One axis of the output.
struct BroadcastAxis {
  int64_t extent = 1;
  std::array<int64_t, kMaxInputs> strides{};  ///< Of each input, in elements; 0 where it broadcasts.
};

/// An input as broadcast_axes() sees it.
struct BroadcastInput {
  Dims dims;
  bool like_output = false;  ///< Has the dims and the layout of the output; all others are row-major.
};

/// The axes of an output in the order in which `layout` puts them, innermost last, without extents of 1; neighbours
/// through which every input walks evenly are one. At least one axis. At most kMaxInputs inputs, absent where an
/// optional one is not given. Blocked layouts only for whole blocks of channels.
std::vector<BroadcastAxis> broadcast_axes(const Dims& output, Layout layout,
                                          const std::vector<std::optional<BroadcastInput>>& inputs);

/// Walks over the positions of all axes but the last, in order, and keeps where each input is.
class RowCursor {
 public:
  /// Starts at row number `row`.
  RowCursor(const std::vector<BroadcastAxis>& axes, size_t num_inputs, int64_t row);
  /// Offset of input k's element at the start of the row.
  int64_t offset(size_t k) const { return offsets_[k]; }
  /// How many rows, this one included, follow each other along the innermost outer axis.
  int64_t rows_in_run() const;
  /// Goes on by `rows` <= rows_in_run().
  void advance(int64_t rows);

 private:
  const std::vector<BroadcastAxis>& axes_;
  size_t num_inputs_;
  std::array<int64_t, kMaxAxes> index_{};
  std::array<int64_t, kMaxInputs> offsets_{};
};

}  // namespace autograph::simd
