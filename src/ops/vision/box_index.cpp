#include "ops/vision/box_index.h"

#include <algorithm>
#include <cmath>

namespace autograph {
namespace {

constexpr size_t kMostCells = 4096;
constexpr size_t kWide = 8;  // cells

// An axis as the boxes see it.
struct Axis {
  float begin = 0, end = 0;
  double extents = 0;  // of all boxes together

  // How many boxes lie side by side; 0 where one reaches to infinity.
  double places(size_t boxes) const {
    const double places = (static_cast<double>(end) - begin) * static_cast<double>(boxes) / extents;
    return std::isfinite(places) ? places : 0;
  }
};

Axis read_axis(std::span<const Box> boxes, int axis) {
  Axis result;
  bool is_first = true;
  for (const Box& box : boxes) {
    if (!box.has_inside()) continue;
    result.begin = is_first ? box.low[axis] : std::min(result.begin, box.low[axis]);
    result.end = is_first ? box.high[axis] : std::max(result.end, box.high[axis]);
    result.extents += static_cast<double>(box.high[axis]) - box.low[axis];
    is_first = false;
  }
  return result;
}

}  // namespace

float overlap(const Box& a, const Box& b) {
  if (!a.has_inside() || !b.has_inside()) return 0;
  float common = 1;
  for (int axis = 0; axis < 2; ++axis) {
    common *= std::max(0.0F, std::min(a.high[axis], b.high[axis]) - std::max(a.low[axis], b.low[axis]));
  }
  return common / (a.area() + b.area() - common);
}

BoxIndex::BoxIndex(std::span<const Box> candidates) {
  const Axis axes[] = {read_axis(candidates, 0), read_axis(candidates, 1)};
  const size_t count = candidates.size();
  axis_ = axes[0].places(count) >= axes[1].places(count) ? 0 : 1;
  const Axis& axis = axes[axis_];
  const double wanted = std::min(axis.places(count), static_cast<double>(std::min(count, kMostCells)));
  const size_t cells = std::max<size_t>(1, static_cast<size_t>(wanted));
  cells_.resize(cells);
  begin_ = axis.begin;
  if (cells > 1) cells_per_unit_ = static_cast<float>(static_cast<double>(cells) / (axis.end - axis.begin));
}

bool BoxIndex::has_overlap(const Box& box, float limit) const {
  if (!box.has_inside()) return false;
  const auto is_above = [&](const Box& other) {
    // Most have nothing in common.
    if (!(other.low[0] < box.high[0]) || !(other.low[1] < box.high[1])) return false;
    if (!(box.low[0] < other.high[0]) || !(box.low[1] < other.high[1])) return false;
    return overlap(box, other) > limit;
  };
  const Cells cells = cells_of(box);
  for (size_t c = cells.first; c <= cells.last; ++c) {
    if (std::any_of(cells_[c].begin(), cells_[c].end(), is_above)) return true;
  }
  return std::any_of(wide_.begin(), wide_.end(), is_above);
}

void BoxIndex::add(const Box& box) {
  if (!box.has_inside()) return;
  const Cells cells = cells_of(box);
  if (cells.last - cells.first >= kWide) return wide_.push_back(box);
  for (size_t c = cells.first; c <= cells.last; ++c) cells_[c].push_back(box);
}

// Larger places are in the same cell or behind it, so that boxes with a place in common share a cell.
BoxIndex::Cells BoxIndex::cells_of(const Box& box) const { return {cell_at(box.low[axis_]), cell_at(box.high[axis_])}; }

size_t BoxIndex::cell_at(float place) const {
  const float cell = (place - begin_) * cells_per_unit_;
  if (!(cell > 0)) return 0;
  const size_t last = cells_.size() - 1;
  return cell < static_cast<float>(last) ? static_cast<size_t>(cell) : last;
}

}  // namespace autograph
