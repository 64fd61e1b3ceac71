// What tasks learn from and what they hold out: the same as open_dataset() gives others.
#pragma once

#include <cstdint>
#include <string>

#include "autograph/data.h"

namespace autograph {

/// A set cut in two.
struct HeldOutSplit {
  DatasetPtr training;
  DatasetPtr held_out;
};

/// kHeldOutShare of the samples, drawn from `seed`, are held out. ValueError where the set is too small for that.
HeldOutSplit hold_out(const DatasetPtr& dataset, uint64_t seed);

/// Both parts of what open_dataset() knows: the set's own two, or those of hold_out().
HeldOutSplit open_split(const std::string& path, uint64_t seed);

}  // namespace autograph
