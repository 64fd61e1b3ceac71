#include "engine/nested/plan_session.h"
#include "tensor/size_of.h"

#include <algorithm>
#include <utility>

namespace autograph {

PlanSession::PlanSession(const Executable::Impl& impl, std::shared_ptr<PlanEntry> entry,
                         std::shared_ptr<Launchable> launchable, bool is_lent)
    : impl_(impl), entry_(std::move(entry)), launchable_(std::move(launchable)), is_lent_(is_lent) {}

std::unique_ptr<PlanSession> PlanSession::on_own_arena(const Executable::Impl& impl, std::shared_ptr<PlanEntry> entry) {
  std::shared_ptr<Launchable> launchable = entry->acquire(impl.device());
  return std::make_unique<PlanSession>(impl, std::move(entry), std::move(launchable), true);
}

std::unique_ptr<PlannedSession> PlanSession::on_given_arena(const Executable::Impl& impl,
                                                            std::shared_ptr<PlanEntry> entry) {
  std::shared_ptr<Launchable> launchable = impl.device().record(entry->compiled());
  return std::make_unique<PlanSession>(impl, std::move(entry), std::move(launchable), false);
}

PlanSession::~PlanSession() {
  if (is_lent_) entry_->give_back(std::move(launchable_));
}

const Type& PlanSession::output_type(size_t k) const { return plan().slots[plan().outputs[k].slot].type; }

bool PlanSession::hands_on(size_t k, size_t i) const { return plan().outputs[k].slot == plan().inputs[i]; }

void PlanSession::bind_memory(void* memory) {
  if (memory == launchable_->arena_address()) return;
  const auto bytes = static_cast<int64_t>(plan().arena_bytes);
  launchable_->bind_arena(Tensor::wrap(DType::u8, {bytes}, memory, nullptr));
}

void PlanSession::run() {
  entry_->count_run();
  impl_.execute(*launchable_, nullptr);
}

bool is_all_planned(const CompiledPlan& compiled) {
  const auto is_fixed = [&](const PlanOutput& output) {
    const Slot& slot = compiled.plan.slots[output.slot];
    return slot.place != Place::heap && is_plain(slot.type);
  };
  // Dynamic steps hold on to their inputs.
  if (compiled.has_dynamic_steps) return false;
  return std::all_of(compiled.plan.outputs.begin(), compiled.plan.outputs.end(), is_fixed);
}

}  // namespace autograph
