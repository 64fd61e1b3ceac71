#include "schedule/step_order.h"

#include <algorithm>

namespace autograph {

StepOrder::StepOrder(const Plan& plan) {
  for (const Step& step : plan.steps) {
    append(step);
    for (const uint32_t earlier : step.waits) add_wait(earlier);
  }
}

void StepOrder::append(const Step& step) {
  if (!entries_.empty() && entries_.back().stage != step.stage) last_.clear();
  if (last_.size() <= step.stream) last_.resize(step.stream + 1, 0);
  Entry entry{step.stage, step.stream, 0, {}};
  if (const uint32_t last = last_[step.stream]; last > 0) {
    entry.position = entries_[last - 1].position + 1;
    entry.clock = entries_[last - 1].clock;
  }
  if (entry.clock.size() <= step.stream) entry.clock.resize(step.stream + 1, 0);
  entry.clock[step.stream] = entry.position;
  entries_.push_back(std::move(entry));
  last_[step.stream] = static_cast<uint32_t>(entries_.size());
}

void StepOrder::add_wait(uint32_t earlier) {
  std::vector<uint32_t>& clock = entries_.back().clock;
  const Entry& other = entries_[earlier];
  clock.resize(std::max(clock.size(), other.clock.size()), 0);
  for (size_t s = 0; s < other.clock.size(); ++s) clock[s] = std::max(clock[s], other.clock[s]);
  clock[other.stream] = std::max(clock[other.stream], other.position + 1);
}

bool StepOrder::precedes(uint32_t a, uint32_t b) const {
  const Entry& first = entries_[a];
  const Entry& second = entries_[b];
  if (first.stage != second.stage) return first.stage < second.stage;
  return first.stream < second.clock.size() && first.position < second.clock[first.stream];
}

}  // namespace autograph
