// Images brought to the extents of a sample.
#pragma once

#include <cstdint>
#include <span>

namespace autograph {

/// Scales an image (rows of 8-bit red, green and blue) so that it just covers height x width and writes the middle of
/// it as planes [3, height, width] in 0 to 1. Bilinear; where it shrinks, with the average of what a pixel covers
/// (a triangle as wide as the ratio), as Pillow does.
void scale_to_cover(std::span<const uint8_t> rgb, int64_t rgb_height, int64_t rgb_width, int64_t height, int64_t width,
                    float* planes);

}  // namespace autograph
