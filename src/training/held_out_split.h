// Holding samples out of sets that come in one piece, and in any order.
#pragma once

#include <cstdint>

#include "autograph/data.h"

namespace autograph {

/// A set cut in two.
struct HeldOutSplit {
  DatasetPtr training;
  DatasetPtr held_out;
};

/// `count` samples, drawn from `seed`, are held out. ValueError unless 0 < count < dataset->size().
HeldOutSplit hold_out(DatasetPtr dataset, int64_t count, uint64_t seed);

}  // namespace autograph
