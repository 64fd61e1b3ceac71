// Storage in the words of the graph: which node made it, and which reads it last.
#include "autograph/op_def.h"
#include "runtime/compiled_plan.h"
#include "schedule/memory/peak_memory.h"

namespace autograph {

std::vector<PeakTensor> tensors_at_peak(const CompiledPlan& compiled) {
  const Plan& plan = compiled.plan;
  std::vector<PeakTensor> tensors;
  for (const AliveStorage& storage : storage_at_peak(plan)) {
    PeakTensor tensor;
    tensor.bytes = storage.bytes;
    if (storage.slot != kNoSlot) tensor.type = to_string(plan.slots[storage.slot].type);
    if (storage.step < plan.steps.size()) {
      const Step& step = plan.steps[storage.step];
      tensor.node = compiled.provenance[storage.step];
      tensor.op = step.is_reorder() ? "reorder" : std::string(compiled.graph->node(step.node).op().name);
    }
    if (storage.last_step < plan.steps.size()) tensor.last_reader = compiled.provenance[storage.last_step];
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace autograph
