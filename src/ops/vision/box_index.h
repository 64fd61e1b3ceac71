// Boxes that can be asked whether one overlaps another one.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace autograph {

struct Box {
  float low[2];
  float high[2];

  float area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
  /// Has it places of its own? Not where a size is NaN, 0 or negative, be it both: two negative ones have an area.
  bool has_inside() const { return area() > 0 && low[0] < high[0]; }
};

/// Intersection over union; 0 when one has no inside.
float overlap(const Box& a, const Box& b);

/// Boxes by the cells of one axis that they reach: a box is compared with those of its cells alone. Detectors that move
/// the boxes of each class elsewhere, so that classes do not overlap, compare ten thousands of boxes at once.
class BoxIndex {
 public:
  /// For boxes like these.
  explicit BoxIndex(std::span<const Box> candidates);
  /// Is the overlap of `box` with one that was added above `limit`, which is 0 or more?
  bool has_overlap(const Box& box, float limit) const;
  void add(const Box& box);

 private:
  struct Cells {
    size_t first, last;
  };
  Cells cells_of(const Box& box) const;
  size_t cell_at(float place) const;

  int axis_ = 0;
  float begin_ = 0;
  float cells_per_unit_ = 0;
  std::vector<std::vector<Box>> cells_;
  std::vector<Box> wide_;  // those that would stand in many cells
};

}  // namespace autograph
