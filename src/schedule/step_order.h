// Which steps of a plan come before which, whatever the streams do: by stage, by their order in a stream, and by waits.
//
// Within a stage each step has a clock: how many steps of every stream are over when it begins. That answers as a bit
// for every pair of steps would, and takes steps * streams entries.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/plan.h"

namespace autograph {

/// Steps are named by their number in the plan.
class StepOrder {
 public:
  StepOrder() = default;
  /// The order of all steps of a plan that went through find_waits().
  explicit StepOrder(const Plan& plan);

  /// Appends the next step of the plan; it follows the last one of its stream.
  void append(const Step& step);
  /// Lets the step appended last follow `earlier`, too.
  void add_wait(uint32_t earlier);
  /// Is `a` over before `b` begins, in every run?
  bool precedes(uint32_t a, uint32_t b) const;

 private:
  struct Entry {
    uint32_t stage = 0;
    uint32_t stream = 0;
    uint32_t position = 0;        // in its stream
    std::vector<uint32_t> clock;  // by stream: steps that are over; streams beyond its end have none
  };

  std::vector<Entry> entries_;
  std::vector<uint32_t> last_;  // by stream of the current stage: one more than the number of its last step; 0: none
};

}  // namespace autograph
