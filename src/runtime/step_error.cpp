#include "runtime/step_error.h"

#include <utility>

#include "base/rethrow.h"

namespace autograph {
namespace {

thread_local EnqueuedStep* innermost = nullptr;

std::string in_place(const std::string& where) { return " (in " + where + ")"; }

}  // namespace

void rethrow_with_place(const std::string& where) {
  rethrow_changed([&](const std::string& message) { return message + in_place(where); });
}

EnqueuedStep::EnqueuedStep(FunctionRef<std::string()> describe)
    : describe_(describe), outer_(std::exchange(innermost, this)) {}

EnqueuedStep::~EnqueuedStep() { innermost = outer_; }

std::string EnqueuedStep::place() { return innermost ? in_place(innermost->describe_()) : ""; }

}  // namespace autograph
