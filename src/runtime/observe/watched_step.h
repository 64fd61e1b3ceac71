// What a NodeWatch is shown of a step of a plan.
#pragma once

#include <optional>

#include "autograph/watch.h"
#include "base/function_ref.h"
#include "runtime/compiled_plan.h"

namespace autograph {

/// The value of a slot on the host in row-major order, which may borrow; nothing where there is none.
using ReadSlot = FunctionRef<Datum(SlotIndex)>;

/// Made before the step runs, since it may write over what it reads.
class WatchedStep {
 public:
  /// Nothing, unless `watch` wants to see the step. Changes of layout are no nodes.
  static std::optional<WatchedStep> begin(NodeWatch* watch, const CompiledPlan& compiled, size_t number, ReadSlot read);
  /// Behind the step: shows it. Throws what the callback throws, and where it stops the run.
  void show(ReadSlot read);

 private:
  WatchedStep(NodeWatch& watch, const CompiledPlan& compiled, size_t number, ReadSlot read);
  NodeWatch* watch_;
  const CompiledPlan* compiled_;
  NodeRun run_;
};

}  // namespace autograph
