// Where roi_align reads a region of an image.
#pragma once

#include <array>
#include <cstdint>

#include "autograph/attribute.h"

namespace autograph {

/// More samples per bin than any image has elements on an axis: only hostile regions need them.
inline constexpr double kMostRoiGrid = 1 << 16;

/// Two neighbours of a coordinate and the weight of the upper one; inside is false when the sample counts as 0.
struct RoiNeighbours {
  int64_t low = 0;
  int64_t high = 0;
  double fraction = 0;
  bool inside = false;

  static RoiNeighbours of(double c, int64_t extent);
};

/// A region on one axis: where it starts, how large a bin is, and how many samples a bin has.
struct RoiSpan {
  double start;
  double bin;
  int64_t grid;

  /// From `low` to `high` in the coordinates of regions, by the attributes of a roi_align.
  static RoiSpan of(const Attributes& attributes, double low, double high, int64_t bins);
  /// Sample `i` of a bin.
  double at(int64_t bin_index, int64_t i) const {
    return start + bin * (static_cast<double>(bin_index) + (static_cast<double>(i) + 0.5) / static_cast<double>(grid));
  }
};

/// A region on both axes.
struct RoiSpans {
  RoiSpan rows, columns;

  /// From its corners x1, y1, x2, y2.
  static RoiSpans of(const Attributes& attributes, const std::array<double, 4>& corners, int64_t bins_high,
                     int64_t bins_wide);
  /// Samples of a bin, those outside of the image among them.
  double count() const { return static_cast<double>(rows.grid) * static_cast<double>(columns.grid); }
};

/// The image of a region, of so many.
int64_t roi_image(const int64_t* batch_indices, int64_t region, int64_t images);

}  // namespace autograph
