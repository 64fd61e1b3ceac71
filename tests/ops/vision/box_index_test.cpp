// Looking among the boxes of some cells finds what looking among all does.
#include "ops/vision/box_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "autograph/random.h"
#include "ops/sample.h"

namespace autograph {
namespace {

float draw_place(Random& random, int64_t most) { return static_cast<float>(draw(random, 0, 1000 * most)) / 1000; }

// Boxes of many sizes, classes far apart, some without an inside, some that reach to infinity or have no place.
std::vector<Box> draw_boxes(Random& random, int64_t count, bool has_special) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const int64_t classes = draw(random, 1, 20), largest = draw(random, 1, 30);
  const int tall = draw_bool(random) ? 1 : 0;
  std::vector<Box> boxes;
  for (int64_t i = 0; i < count; ++i) {
    Box box{{draw_place(random, 100), draw_place(random, 100)}, {}};
    box.low[tall] += static_cast<float>(101 * draw(random, 0, classes - 1));
    for (int axis = 0; axis < 2; ++axis) box.high[axis] = box.low[axis] + draw_place(random, largest);
    if (i % 50 == 7) box.high[0] = box.low[0];
    if (i % 40 == 9) box = {{0, 0}, {2000, 2000}};
    if (has_special && i % 60 == 5) box.high[1] = kInfinity;
    if (has_special && i % 60 == 15) box.low[0] = -kInfinity;
    if (has_special && i % 60 == 25) box.low[1] = std::numeric_limits<float>::quiet_NaN();
    // Centers with negative sizes; of some draws all.
    if (has_special && (largest == 1 || i % 30 == 11)) std::swap(box.low, box.high);
    boxes.push_back(box);
  }
  return boxes;
}

TEST(BoxIndex, FindsWhatLookingAtAllDoes) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    const std::vector<Box> boxes = draw_boxes(random, draw(random, 0, 300), round % 4 == 3);
    const float limit = draw_place(random, 1);
    BoxIndex index(boxes);
    std::vector<Box> added;
    for (size_t i = 0; i < boxes.size(); ++i) {
      const bool expected =
          std::any_of(added.begin(), added.end(), [&](const Box& other) { return overlap(boxes[i], other) > limit; });
      ASSERT_EQ(index.has_overlap(boxes[i], limit), expected) << "round " << round << ", box " << i;
      if (expected) continue;
      index.add(boxes[i]);
      added.push_back(boxes[i]);
    }
  }
}

}  // namespace
}  // namespace autograph
