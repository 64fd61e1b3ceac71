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

 private:
  enum class Padding { zeros, border, reflection };
  enum class Mode { nearest, linear, cubic };

  size_t taps_per_axis() const;
  double low() const { return align_corners_ ? 0.0 : -0.5; }
  double high(int64_t extent) const { return static_cast<double>(extent) - (align_corners_ ? 1.0 : 0.5); }
  double reflect(double c, int64_t extent) const;
  int64_t index_of(double c, int64_t extent) const;
  void axis_taps(double normalized, int64_t extent, GridTap* taps) const;

  std::vector<int64_t> extents_;
  bool align_corners_;
  Padding padding_ = Padding::reflection;
  Mode mode_ = Mode::cubic;
};

}  // namespace autograph
