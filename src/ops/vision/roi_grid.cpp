#include "ops/vision/roi_grid.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace autograph {

RoiNeighbours RoiNeighbours::of(double c, int64_t extent) {
  const auto size = static_cast<double>(extent);
  if (!(c >= -1 && c <= size) || extent == 0) return {};
  c = std::clamp(c, 0.0, size - 1);
  const auto low = static_cast<int64_t>(c);
  return {low, std::min(low + 1, extent - 1), c - std::floor(c), true};
}

RoiSpan RoiSpan::of(const Attributes& attributes, double low, double high, int64_t bins) {
  const double scale = attributes.real("spatial_scale");
  const bool shifted = attributes.text("coordinate_transformation_mode") == "half_pixel";
  const double start = low * scale - (shifted ? 0.5 : 0.0);
  double size = high * scale - (shifted ? 0.5 : 0.0) - start;
  if (!shifted) size = std::max(size, 1.0);
  const int64_t ratio = attributes.integer("sampling_ratio");
  const double adaptive = std::ceil(size / static_cast<double>(bins));
  AG_CHECK_USER(ratio > 0 || adaptive <= kMostRoiGrid, ValueError,
                "[roi_align] region: expected at most {} elements per bin, got {}", kMostRoiGrid, adaptive);
  const int64_t grid = ratio > 0 ? ratio : static_cast<int64_t>(std::max(adaptive, 0.0));
  return {start, size / static_cast<double>(bins), grid};
}

RoiSpans RoiSpans::of(const Attributes& attributes, const std::array<double, 4>& corners, int64_t bins_high,
                      int64_t bins_wide) {
  return {RoiSpan::of(attributes, corners[1], corners[3], bins_high),
          RoiSpan::of(attributes, corners[0], corners[2], bins_wide)};
}

int64_t roi_image(const int64_t* batch_indices, int64_t region, int64_t images) {
  const int64_t image = batch_indices[region];
  AG_CHECK_USER(image >= 0 && image < images, ValueError, "[roi_align] batch index: expected 0..{}, got {} (region {})",
                images - 1, image, region);
  return image;
}

}  // namespace autograph
