// What lies in the arena when most of it is in use: who owns the peak.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/plan.h"

namespace autograph {

/// Storage in use.
struct AliveStorage {
  SlotIndex slot = kNoSlot;  ///< Whose storage; kNoSlot: working memory of `step`.
  uint32_t step = 0;         ///< The step that writes it, or works with it.
  uint32_t last_step = 0;    ///< The last step that reads it; Plan::steps.size(): it leaves the run.
  size_t bytes = 0;
};

/// The storage in use at the step where that is most, largest first. Steps count in their order; with several streams
/// others may run at the same time. After place_memory().
std::vector<AliveStorage> storage_at_peak(const Plan& plan);

}  // namespace autograph
