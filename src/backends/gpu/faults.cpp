#include "backends/gpu/faults.h"

#include <fmt/core.h>

#include "runtime/step_error.h"

namespace autograph::gpu {

size_t FaultMessages::add(const std::string& text) {
  messages_.push_back({text, EnqueuedStep::place()});
  return messages_.size() - 1;
}

std::string FaultMessages::first(std::span<const Fault> faults) const {
  for (size_t k = 0; k < messages_.size(); ++k) {
    if (faults[k].has_happened) return fmt::format("{}{}{}", messages_[k].text, faults[k].number, messages_[k].place);
  }
  return "";
}

}  // namespace autograph::gpu
