// Storage in the words of the graph: which node made it, and which reads it last.
#include <span>

#include "autograph/op_def.h"
#include "base/join.h"
#include "runtime/compiled_plan.h"
#include "schedule/memory/peak_memory.h"

namespace autograph {
namespace {

// Who made the node, and the lines of the program that did, where they are known: "attention/softmax
// (attention.py:124)".
std::string origin_of(const CompiledPlan& compiled, uint32_t step) {
  const NodeId node = compiled.plan.steps[step].node;
  const std::string& name = compiled.provenance[step];
  if (!compiled.graph->is_live(node)) return name;
  const std::span<const std::string> places = compiled.graph->node(node).provenance().places();
  return places.empty() ? name : name + " (" + join(places, ", ") + ")";
}

}  // namespace

std::vector<PeakTensor> tensors_at_peak(const CompiledPlan& compiled) {
  const Plan& plan = compiled.plan;
  std::vector<PeakTensor> tensors;
  for (const AliveStorage& storage : storage_at_peak(plan)) {
    PeakTensor tensor;
    tensor.bytes = storage.bytes;
    if (storage.slot != kNoSlot) tensor.type = to_string(plan.slots[storage.slot].type);
    if (storage.step < plan.steps.size()) {
      const Step& step = plan.steps[storage.step];
      tensor.node = origin_of(compiled, storage.step);
      tensor.op = step.is_reorder() ? "reorder" : std::string(compiled.graph->node(step.node).op().name);
    }
    if (storage.last_step < plan.steps.size()) tensor.last_reader = compiled.provenance[storage.last_step];
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace autograph
