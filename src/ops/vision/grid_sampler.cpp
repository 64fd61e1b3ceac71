#include "ops/vision/grid_sampler.h"

#include <algorithm>
#include <cmath>

namespace autograph {
namespace {

double cubic(double t) {
  constexpr double a = -0.75;
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return ((t - 5) * t + 8) * t * a - 4 * a;
}

}  // namespace

GridSampler::GridSampler(const Attributes& attributes, std::span<const int64_t> extents)
    : extents_(extents.begin(), extents.end()), align_corners_(attributes.flag("align_corners")) {
  const std::string& padding = attributes.text("padding_mode");
  if (padding == "zeros") padding_ = Padding::zeros;
  if (padding == "border") padding_ = Padding::border;
  const std::string& mode = attributes.text("mode");
  if (mode == "nearest") mode_ = Mode::nearest;
  if (mode == "linear") mode_ = Mode::linear;
}

size_t GridSampler::taps_per_axis() const { return mode_ == Mode::nearest ? 1 : mode_ == Mode::linear ? 2 : 4; }

size_t GridSampler::most_taps() const {
  size_t product = 1;
  for (size_t axis = 0; axis < extents_.size(); ++axis) product *= taps_per_axis();
  return product;
}

double GridSampler::reflect(double c, int64_t extent) const {
  const double range = high(extent) - low();
  if (range <= 0) return 0;
  const double beyond = c < low() ? low() - c : c - high(extent);
  if (beyond <= 0) return c;
  const double turns = std::floor(beyond / range);
  const double rest = beyond - turns * range;
  const bool from_low = (c < low()) == (std::fmod(turns, 2) == 0);
  return from_low ? low() + rest : high(extent) - rest;
}

// Index of an element, or -1 for a zero.
int64_t GridSampler::index_of(double c, int64_t extent) const {
  const auto last = static_cast<double>(extent - 1);
  if (c >= 0 && c <= last) return static_cast<int64_t>(c);
  if (padding_ == Padding::zeros || std::isnan(c)) return -1;
  if (padding_ == Padding::reflection) c = reflect(c, extent);
  return static_cast<int64_t>(std::clamp(c, 0.0, last));
}

// (index, weight) of the elements that a coordinate mixes.
void GridSampler::edge_taps(double c, int64_t extent, GridTap* taps) const {
  const auto size = static_cast<double>(extent);
  if (mode_ == Mode::nearest) c = std::nearbyint(c);
  if (c < low() || c > high(extent)) {
    if (padding_ == Padding::border) c = std::clamp(c, 0.0, size - 1);
    if (padding_ == Padding::reflection) c = reflect(c, extent);
  }
  if (std::isnan(c) && padding_ != Padding::zeros) c = 0;
  if (mode_ == Mode::nearest) {
    taps[0] = {index_of(c, extent), 1.0};
    return;
  }
  const double left = std::floor(c);
  const double f = c - left;
  if (mode_ == Mode::linear) {
    taps[0] = {index_of(left, extent), 1 - f};
    taps[1] = {index_of(left + 1, extent), f};
    // The same element twice: even an infinite one is itself then.
    if (taps[0].offset == taps[1].offset) taps[0].weight = 1, taps[1].offset = -1;
    return;
  }
  const double weights[]{cubic(f + 1), cubic(f), cubic(1 - f), cubic(2 - f)};
  for (int t = 0; t < 4; ++t) taps[t] = {index_of(left - 1 + t, extent), weights[t]};
}

void GridSampler::mix(std::span<const double> point, std::vector<GridTap>& taps) const {
  taps.assign(1, {0, 1.0});
  for (size_t axis = 0; axis < extents_.size(); ++axis) {
    GridTap along[4];
    axis_taps(point[extents_.size() - 1 - axis], extents_[axis], along);
    const auto* end = std::remove_if(along, along + taps_per_axis(), [](const GridTap& tap) { return tap.offset < 0; });
    const size_t count = taps.size();
    taps.resize(count * static_cast<size_t>(end - along));
    if (taps.empty()) return;
    // Backwards, as the first of them takes the places of those so far.
    for (auto t = static_cast<size_t>(end - along); t-- > 0;) {
      for (size_t k = 0; k < count; ++k) {
        taps[t * count + k] = {taps[k].offset * extents_[axis] + along[t].offset, taps[k].weight * along[t].weight};
      }
    }
  }
}

}  // namespace autograph
