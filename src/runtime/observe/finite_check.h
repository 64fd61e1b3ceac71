// CompileOptions::check_nan, whatever the executor: which values of a run hold a NaN or infinity, each looked at once.
#pragma once

#include <vector>

#include "base/function_ref.h"
#include "runtime/find_nonfinite.h"
#include "runtime/observe/watched_step.h"

namespace autograph {

/// What find_worst() finds in a slot; nothing where there is nothing to look at.
using FindNonfinite = FunctionRef<Nonfinite(SlotIndex)>;

/// What is known of the slots of a plan while it runs. Weights are looked at in the first run, inputs of the graph when
/// they are first read, all else when it is written.
class FiniteCheck {
 public:
  explicit FiniteCheck(const CompiledPlan& compiled);
  void begin_run();
  /// Before a step, which may write over an input: looks at inputs that nobody has looked at.
  bool has_finite_inputs(size_t number, FindNonfinite find);
  /// Behind a step: looks at its outputs. Throws NonfiniteError with statistics of the inputs where one of them holds a
  /// NaN, or an infinity and `inputs_are_finite`: infinities may come in on purpose, as in masks.
  void check_outputs(size_t number, bool inputs_are_finite, FindNonfinite find, ReadSlot read);

 private:
  enum class State : uint8_t { unknown, finite, not_finite };
  State& state_of(SlotIndex slot);
  bool is_finite(SlotIndex slot, FindNonfinite find);
  std::string describe_cause(const Step& step, ReadSlot read) const;
  std::string describe_inputs(const Step& step, ReadSlot read) const;
  std::string describe_input(const Step& step, size_t i) const;

  const CompiledPlan& compiled_;
  std::vector<State> states_;  // by slot
};

}  // namespace autograph
