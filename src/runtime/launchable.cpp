#include "runtime/launchable.h"

#include <algorithm>
#include <set>

#include "base/stopwatch.h"
#include "tensor/size_of.h"

namespace autograph {

Launchable::Launchable(std::shared_ptr<const CompiledPlan> compiled) : compiled_(std::move(compiled)) {
  for (const auto& kernel : compiled_->kernels) {
    kernels_.push_back({kernel.get(), kernel ? kernel->new_state() : nullptr});
  }
  take_state_kernels();
  if (compiled_->state_kernels) contents_ = compiled_->state_kernels->states();
  if (compiled_->has_dynamic_steps) heap_.resize(compiled_->plan.slots.size());
}

void Launchable::set_state(size_t i, const Tensor& tensor, uint64_t version) {
  if (contents_.empty() || !contents_[i].tensor.is_present() || contents_[i].version == version) return;
  contents_[i] = {tensor, version};
  has_new_contents_ = true;
}

void Launchable::renew_kernels(const RunOptions& options) {
  if (!has_new_contents_) return;
  // Packing, too, takes no more threads than find a processor.
  if (options.watch) options.host_threads.limit(options.watch->limit());
  compiled_->state_kernels->renew(*compiled_, contents_, options);
  take_state_kernels();
  has_new_contents_ = false;
}

void Launchable::take_state_kernels() {
  StateKernels* kernels = compiled_->state_kernels.get();
  for (size_t k = 0; kernels && k < kernels->size(); ++k) kernels->take(k, kernels_[kernels->number(k)]);
}

double Launchable::time_us(const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter) {
  const Stopwatch watch;
  launch(options, meter);
  return watch.us();
}

bool Launchable::has_overwritten_inputs() const {
  const Plan& plan = compiled_->plan;
  std::set<const void*> inputs;
  for (const SlotIndex s : plan.inputs) inputs.insert(address_of(s));
  inputs.erase(nullptr);
  const auto is_input = [&](SlotIndex s) {
    return s != kNoSlot && plan.slots[s].place == Place::output && inputs.contains(address_of(plan.slots[s].root));
  };
  return std::any_of(plan.steps.begin(), plan.steps.begin() + static_cast<ptrdiff_t>(num_started_),
                     [&](const Step& s) { return std::any_of(s.outputs.begin(), s.outputs.end(), is_input); });
}

bool Launchable::is_fixed_output(size_t k) const {
  const Slot& slot = compiled_->plan.slots[compiled_->plan.outputs[k].slot];
  return slot.place != Place::heap && is_plain(slot.type);
}

}  // namespace autograph
