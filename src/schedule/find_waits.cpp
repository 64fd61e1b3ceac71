// What steps wait for, and the stages of a plan as the runtime goes through them.
#include <algorithm>
#include <limits>

#include "schedule/plan.h"
#include "schedule/step_order.h"

namespace autograph {
namespace {

constexpr uint32_t kNoStep = std::numeric_limits<uint32_t>::max();

// By slot: the step that writes it.
std::vector<uint32_t> find_writers(const Plan& plan) {
  std::vector<uint32_t> writer(plan.slots.size(), kNoStep);
  for (uint32_t number = 0; number < plan.steps.size(); ++number) {
    for (const SlotIndex s : plan.steps[number].outputs) {
      if (s != kNoSlot) writer[s] = number;
    }
  }
  return writer;
}

// The steps of other streams of the same stage whose results a step reads or stands behind, latest first.
std::vector<uint32_t> others_read(const Plan& plan, const Step& step, const std::vector<uint32_t>& writer) {
  std::vector<uint32_t> found;
  std::vector<SlotIndex> slots = step.inputs;
  slots.insert(slots.end(), step.after.begin(), step.after.end());
  for (const SlotIndex s : slots) {
    const uint32_t number = s == kNoSlot ? kNoStep : writer[plan.slots[s].source];
    if (number == kNoStep) continue;
    const Step& other = plan.steps[number];
    if (other.stage == step.stage && other.stream != step.stream) found.push_back(number);
  }
  std::sort(found.rbegin(), found.rend());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

// Steps that use the threads of a stream are those of a stage with several.
bool has_streams(const Plan& plan) {
  return std::any_of(plan.steps.begin(), plan.steps.end(), [](const Step& step) { return step.threads > 0; });
}

void find_stages(Plan& plan) {
  plan.stages.clear();
  for (uint32_t number = 0; number < plan.steps.size(); ++number) {
    const Step& step = plan.steps[number];
    const bool continues = number > 0 && (step.stage == plan.steps[number - 1].stage ||
                                          (step.threads == 0 && !plan.steps[number - 1].threads));
    if (!continues) plan.stages.push_back({number, number, step.threads, {}});
    PlanStage& stage = plan.stages.back();
    stage.end = number + 1;
    if (step.threads == 0) continue;
    if (stage.streams.size() <= step.stream) stage.streams.resize(step.stream + 1);
    stage.streams[step.stream].push_back(number);
  }
  for (PlanStage& stage : plan.stages) {
    std::erase_if(stage.streams, [](const std::vector<uint32_t>& stream) { return stream.empty(); });
  }
}

}  // namespace

void find_waits(Plan& plan) {
  if (!has_streams(plan)) return;
  const std::vector<uint32_t> writer = find_writers(plan);
  StepOrder order;
  for (uint32_t number = 0; number < plan.steps.size(); ++number) {
    Step& step = plan.steps[number];
    step.waits.clear();
    step.is_awaited = false;
    order.append(step);
    // What a later one has waited for itself needs no wait of its own.
    for (const uint32_t other : others_read(plan, step, writer)) {
      if (order.precedes(other, number)) continue;
      order.add_wait(other);
      step.waits.push_back(other);
      plan.steps[other].is_awaited = true;
    }
  }
  find_stages(plan);
}

}  // namespace autograph
