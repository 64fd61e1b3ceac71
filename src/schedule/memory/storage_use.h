// From when to when the storage of slots is used in a plan with several streams: not an interval of steps, but the
// writes that begin it and the accesses that end it, one a stream at most.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/plan.h"
#include "schedule/step_order.h"

namespace autograph {

/// The accesses with which a use begins and ends. All others lie between some of these.
struct Occupancy {
  std::vector<uint32_t> first;  ///< Steps of the first stage that uses the storage: the first of each stream.
  std::vector<uint32_t> last;  ///< Of the last stage: the last of each stream. The number of steps: the end of the run.
};

class StorageUse {
 public:
  explicit StorageUse(const Plan& plan);
  /// Use of the storage of a root slot.
  const Occupancy& of(SlotIndex root) const { return uses_[root]; }
  /// Are all other accesses to the storage of `root` over before `step` begins?
  bool is_last(SlotIndex root, uint32_t step) const;
  /// May the storage of neither be that of the other?
  bool alive_together(const Occupancy& a, const Occupancy& b) const { return !ends_before(a, b) && !ends_before(b, a); }
  /// Has the use ended before any step from `step` on begins, on whatever stream that is?
  bool is_over(const Occupancy& use, uint32_t step) const;

 private:
  void add(SlotIndex slot, uint32_t step);
  std::vector<uint32_t> first_steps_from(uint32_t step) const;
  bool ends_before(const Occupancy& a, const Occupancy& b) const;

  const Plan& plan_;
  StepOrder order_;
  std::vector<Occupancy> uses_;  // by slot
};

}  // namespace autograph
