#include "cost/layout_cost.h"

#include <algorithm>
#include <map>

#include "autograph/verify.h"

namespace autograph {
namespace {

// What the reorders of a plan take goes to the nodes that need them.
void add_reorders(const Plan& plan, const ChooseOptions& options, std::vector<LayoutCost>& costs) {
  std::map<SlotIndex, double> unread_us;  // of reorders whose result no step has read so far, by its slot
  std::vector<NodeId> maker(plan.slots.size());
  for (const Step& step : plan.steps) {
    if (step.is_reorder()) {
      const Slot& from = plan.slots[step.inputs[0]];
      const Layout to = plan.slots[step.outputs[0]].layout;
      unread_us[step.outputs[0]] =
          options.cost.reorder_us(options.catalog, {from.type, from.layout, to, options.threads_of(step)});
      maker[step.outputs[0]] = maker[step.inputs[0]];
      continue;
    }
    for (const SlotIndex s : step.inputs) {
      const auto unread = s == kNoSlot ? unread_us.end() : unread_us.find(s);
      if (unread == unread_us.end()) continue;
      costs[step.node.index].reorders_us += unread->second;
      unread_us.erase(unread);
    }
    for (const SlotIndex s : step.outputs) {
      if (s != kNoSlot) maker[s] = step.node;
    }
  }
  // Views and what leaves the run are made row-major behind who made them.
  for (const auto& [slot, us] : unread_us) {
    if (maker[slot].is_valid()) costs[maker[slot].index].reorders_us += us;
  }
}

}  // namespace

std::vector<LayoutCost> layout_costs(const Graph& finished, const ChooseOptions& options) {
  Graph graph = finished;
  const KnownValues known = infer_types(graph);
  Plan plan = plan_sequential(graph, known);
  std::vector<StepLayouts> layouts;
  const std::vector<StepChoice> choices = choose_kernels(plan, graph, options, layouts);
  std::vector<LayoutCost> costs(graph.node_capacity());
  for (size_t n = 0; n < choices.size(); ++n) {
    if (choices[n].least_us <= 0) continue;
    costs[plan.steps[n].node.index].share = std::max(1.0, choices[n].us / choices[n].least_us);
  }
  insert_reorders(plan, layouts);
  add_reorders(plan, options, costs);
  return costs;
}

}  // namespace autograph
