// What of a plan is captured: all steps as one, or the pieces between steps that need the host.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "autograph/device.h"
#include "schedule/plan.h"

namespace autograph {

/// Steps [begin, end) of a plan.
struct StepPiece {
  size_t begin = 0;
  size_t end = 0;
  std::unique_ptr<CapturedWork> captured;  ///< Null: they are enqueued one by one.
};

/// Finds out which steps of a plan a device can capture. What waits on the host tells so only when it is asked to be
/// captured: it is tried, and known from then on, for all places where the plan runs.
class StepCapture {
 public:
  explicit StepCapture(const Plan& plan);

  /// All steps in order, those that follow each other and can be captured as one piece. `enqueue` enqueues some of
  /// them, and calls refuse() for the one that fails. Empty where nothing can be captured.
  std::vector<StepPiece> capture(Stream& stream, const std::function<void(size_t begin, size_t end)>& enqueue);
  void refuse(size_t step) { refused_ = step; }

 private:
  size_t end_of_piece(size_t begin) const;
  bool is_worth_it(size_t begin, size_t end) const;

  bool is_possible_ = true;      // false once it has turned out not to be, whatever is left out
  std::vector<bool> can_be_in_;  // by step, as far as is known
  size_t refused_;               // the last step that failed
};

}  // namespace autograph
