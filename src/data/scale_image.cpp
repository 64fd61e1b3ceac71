#include "data/scale_image.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace autograph {
namespace {

// Which pixels make one pixel of the result, and with which weights.
struct Taps {
  int64_t first = 0;
  std::vector<float> weights;
};

// For pixels 0 to count - 1 of the middle of a line of `from` pixels that is scaled by `scale`.
std::vector<Taps> find_taps(int64_t from, int64_t count, double scale) {
  const double margin = (static_cast<double>(from) * scale - static_cast<double>(count)) / 2;
  const double reach = std::max(1.0, 1 / scale);
  std::vector<Taps> taps(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const double center = (static_cast<double>(i) + 0.5 + margin) / scale;
    const auto first = std::clamp<int64_t>(std::llround(std::floor(center - reach)), 0, from - 1);
    const auto last = std::clamp<int64_t>(std::llround(std::ceil(center + reach)), first, from - 1);
    Taps& own = taps[static_cast<size_t>(i)];
    own.first = first;
    double sum = 0;
    std::vector<double> weights;
    for (int64_t k = first; k <= last; ++k) {
      const double distance = std::abs(static_cast<double>(k) + 0.5 - center) / reach;
      weights.push_back(std::max(0.0, 1 - distance));
      sum += weights.back();
    }
    // A center beyond the last pixel's by rounding alone has no pixel near: then that pixel is the result.
    for (double& weight : weights) weight = sum > 0 ? weight / sum : 1 / static_cast<double>(weights.size());
    own.weights.assign(weights.begin(), weights.end());
  }
  return taps;
}

}  // namespace

void scale_to_cover(std::span<const uint8_t> rgb, int64_t rgb_height, int64_t rgb_width, int64_t height, int64_t width,
                    float* planes) {
  const double scale = std::max(static_cast<double>(height) / static_cast<double>(rgb_height),
                                static_cast<double>(width) / static_cast<double>(rgb_width));
  const std::vector<Taps> rows = find_taps(rgb_height, height, scale), columns = find_taps(rgb_width, width, scale);
  // One line at a time: the rows that make it are added up, then its pixels.
  std::vector<float> line(static_cast<size_t>(3 * rgb_width));
  for (int64_t y = 0; y < height; ++y) {
    const Taps& row = rows[static_cast<size_t>(y)];
    std::fill(line.begin(), line.end(), 0.0F);
    for (size_t k = 0; k < row.weights.size(); ++k) {
      const uint8_t* from = rgb.data() + (row.first + static_cast<int64_t>(k)) * 3 * rgb_width;
      for (size_t i = 0; i < line.size(); ++i) line[i] += row.weights[k] * static_cast<float>(from[i]);
    }
    for (int64_t x = 0; x < width; ++x) {
      const Taps& column = columns[static_cast<size_t>(x)];
      for (int64_t c = 0; c < 3; ++c) {
        float sum = 0;
        for (size_t k = 0; k < column.weights.size(); ++k) {
          sum += column.weights[k] * line[static_cast<size_t>(3 * (column.first + static_cast<int64_t>(k)) + c)];
        }
        planes[(c * height + y) * width + x] = sum / 255.0F;
      }
    }
  }
}

}  // namespace autograph
