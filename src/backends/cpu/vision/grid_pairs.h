// Linear grid_sample: a position mixes pairs of neighbours along the innermost axis, each read at once, of some rows.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ops/vision/grid_sampler.h"

namespace autograph {

/// The pairs of a few positions, found once and mixed in every channel.
class GridPairs {
 public:
  static constexpr int64_t kPositions = 128;

  /// Can all positions be mixed by pairs?
  static bool fit(const GridSampler& sampler, std::span<const int64_t> extents);
  /// Finds the pairs of `count` positions, at most kPositions, from their points in `grid`.
  void find(const GridSampler& sampler, std::span<const int64_t> extents, const float* grid, int64_t count);
  /// Mixes channels that lie `in_step` elements apart: each gets `count` elements, as many as were found, `out_step`
  /// apart.
  void mix(const float* in, int64_t in_step, int64_t channels, float* out, int64_t out_step, int64_t count) const;

 private:
  static constexpr size_t kMaxAxes = 3;
  static constexpr size_t kMaxRows = 4;  // of pairs: two for each axis but the innermost

  void set(size_t row, int64_t position, int64_t offset, const float* weights, const uint32_t* masks);
  void clear(int64_t begin, int64_t end);

  size_t rows_ = 1;
  // [row][position]; the pairs of eight positions stand in the order in which mix() needs them. What is outside of the
  // image has masks of 0, so that what is read in vain may be infinite.
  std::array<int32_t, kMaxRows * kPositions> offset_;
  std::array<float, kMaxRows * kPositions * 2> weight_;
  std::array<uint32_t, kMaxRows * kPositions * 2> mask_;
};

}  // namespace autograph
