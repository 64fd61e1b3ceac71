// What grid_sample reads at a position. The reference and the kernels share it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autograph/attribute.h"

namespace autograph {

/// One element that a position mixes, by its place in the channel.
struct GridTap {
  int64_t offset = 0;
  double weight = 1;
};

/// Finds the elements of images with the given spatial extents that positions mix.
class GridSampler {
 public:
  GridSampler(const Attributes& attributes, std::span<const int64_t> extents);
  /// The most elements that a position mixes.
  size_t most_taps() const;
  /// Sets `taps` to what is mixed at `point`, whose normalised coordinates run from the innermost axis outwards. Zeros
  /// outside of the image are left out.
  void mix(std::span<const double> point, std::vector<GridTap>& taps) const;
  /// Does a position mix two elements along each axis?
  bool is_linear() const { return mode_ == Mode::linear; }
  /// The elements that a normalised coordinate mixes along an axis, one, two or four: their indices, -1 for a zero
  /// outside of the image, and weights.
  void axis_taps(double normalized, int64_t extent, GridTap* taps) const;

 private:
  enum class Padding { zeros, border, reflection };
  enum class Mode { nearest, linear, cubic };

  size_t taps_per_axis() const;
  double low() const { return align_corners_ ? 0.0 : -0.5; }
  double high(int64_t extent) const { return static_cast<double>(extent) - (align_corners_ ? 1.0 : 0.5); }
  double reflect(double c, int64_t extent) const;
  int64_t index_of(double c, int64_t extent) const;
  double coordinate(double normalized, int64_t extent) const;
  void edge_taps(double c, int64_t extent, GridTap* taps) const;

  std::vector<int64_t> extents_;
  bool align_corners_;
  Padding padding_ = Padding::reflection;
  Mode mode_ = Mode::cubic;
};

inline double GridSampler::coordinate(double normalized, int64_t extent) const {
  const auto size = static_cast<double>(extent);
  return align_corners_ ? (normalized + 1) / 2 * (size - 1) : ((normalized + 1) * size - 1) / 2;
}

inline void GridSampler::axis_taps(double normalized, int64_t extent, GridTap* taps) const {
  const double c = coordinate(normalized, extent);
  // Between two elements of the image, as most are, nothing is to be decided.
  if (mode_ == Mode::linear && c >= 0 && c < static_cast<double>(extent - 1)) {
    const auto left = static_cast<int64_t>(c);
    const double f = c - static_cast<double>(left);
    taps[0] = {left, 1 - f};
    taps[1] = {left + 1, f};
    return;
  }
  edge_taps(c, extent, taps);
}

}  // namespace autograph
