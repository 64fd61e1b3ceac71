// Axes as ops take them: negative ones count from the back.
#pragma once

#include <cstdint>

namespace autograph {

/// `axis` counted from the front, for an axis that is known to be one of a tensor of rank `rank`.
constexpr int64_t front_axis(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

}  // namespace autograph
