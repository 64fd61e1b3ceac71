// Adds where it happened to an exception that a step threw.
#pragma once

#include <string>

#include "base/function_ref.h"

namespace autograph {

/// Call inside a catch block: rethrow_changed() with " (in WHERE)" after the message.
[[noreturn]] void rethrow_with_place(const std::string& where);

/// While it lives, what this thread enqueues is for the step that `describe` tells of. Devices find some errors only
/// when they come to it: then they know where.
class EnqueuedStep {
 public:
  explicit EnqueuedStep(FunctionRef<std::string()> describe);
  ~EnqueuedStep();
  EnqueuedStep(const EnqueuedStep&) = delete;
  EnqueuedStep& operator=(const EnqueuedStep&) = delete;
  /// " (in WHERE)"; "" where this thread enqueues no step.
  static std::string place();

 private:
  FunctionRef<std::string()> describe_;
  EnqueuedStep* outer_;
};

}  // namespace autograph
