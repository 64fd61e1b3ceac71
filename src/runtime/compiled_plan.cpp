#include "runtime/compiled_plan.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/join.h"
#include "runtime/memory_meter.h"
#include "runtime/step_error.h"

namespace autograph {
namespace {

std::vector<Type> types_of(const Plan& plan, const std::vector<SlotIndex>& slots) {
  std::vector<Type> types;
  for (const SlotIndex s : slots) types.push_back(s == kNoSlot ? Type() : plan.slots[s].type);
  return types;
}

std::vector<Tensor> constants_of(const Plan& plan, const std::vector<SlotIndex>& slots) {
  std::vector<Tensor> constants(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] == kNoSlot || plan.slots[slots[i]].place != Place::weight) continue;
    const Tensor& weight = plan.weights[plan.slots[slots[i]].index];
    const Type& type = plan.slots[slots[i]].type;
    constants[i] = type.is_static() ? weight.reshaped(type.shape().static_dims()) : weight;
  }
  return constants;
}

void check_budget(const CompiledPlan& compiled, size_t budget_bytes) {
  size_t output_bytes = 0;
  for (const PlanOutput& output : compiled.plan.outputs) output_bytes += compiled.plan.slots[output.slot].bytes;
  size_t needed = 0;
  const bool overflow = __builtin_add_overflow(compiled.plan.arena_bytes, output_bytes, &needed);
  const size_t available = available_memory_bytes();
  const bool over_budget = budget_bytes > 0 && needed > budget_bytes;
  if (!overflow && !over_budget && needed <= available) return;
  throw BudgetError(fmt::format("[memory] plan: {} bytes (arena {}, outputs {}) exceed {}; the largest tensors are:{}",
                                needed, compiled.plan.arena_bytes, output_bytes,
                                over_budget ? fmt::format("the budget of {} bytes", budget_bytes)
                                            : fmt::format("the available {} bytes", available),
                                describe_largest(compiled.plan, *compiled.graph)));
}

// Refuses a single tensor that cannot fit before the planner and the kernels see it.
void check_single_tensors(const CompiledPlan& compiled, size_t budget_bytes) {
  const size_t available = available_memory_bytes();
  const size_t limit = budget_bytes > 0 ? std::min(budget_bytes, available) : available;
  for (const Slot& slot : compiled.plan.slots) {
    if (slot.place != Place::arena && slot.place != Place::output) continue;
    AG_CHECK_USER(slot.bytes <= limit, BudgetError,
                  "[memory] tensor: {} takes {} bytes, {} may be used (made by {}); the largest tensors are:{}",
                  to_string(slot.type), slot.bytes, limit,
                  describe(*compiled.graph, compiled.graph->value(slot.value).producer()),
                  describe_largest(compiled.plan, *compiled.graph));
  }
}

class PlanCompiler {
 public:
  PlanCompiler(std::shared_ptr<const Graph> graph, const KnownValues& known, const PlanOptions& options)
      : options_(options), compiled_(std::make_shared<CompiledPlan>()) {
    compiled_->graph = std::move(graph);
    compiled_->plan = plan_sequential(*compiled_->graph, known);
  }

  std::shared_ptr<const CompiledPlan> run() {
    CompiledPlan& c = *compiled_;
    check_single_tensors(c, options_.memory_budget_bytes);
    for (const Slot& slot : c.plan.slots) {
      c.slot_dims.push_back(slot.type.is_static() ? slot.type.shape().static_dims() : Dims());
    }
    for (Step& step : c.plan.steps) prepare_step(step);
    throw_if_missing();
    place_memory(c.plan);
    check_budget(c, options_.memory_budget_bytes);
    c.memory.arena_bytes = c.plan.arena_bytes;
    c.memory.sum_of_tensors_bytes = c.plan.sum_of_tensors_bytes;
    c.memory.lower_bound_bytes = c.plan.lower_bound_bytes;
    for (const Tensor& weight : c.plan.weights) c.memory.weight_bytes += weight.size_bytes();
    return compiled_;
  }

 private:
  void prepare_step(Step& step) {
    CompiledPlan& c = *compiled_;
    const Node& node = c.graph->node(step.node);
    c.provenance.push_back(node.provenance().empty() ? std::string(node.op().name) : node.provenance().to_string());
    if (step.kind != StepKind::fixed) {
      step.kernel = step.kind == StepKind::evaluate ? "evaluate" : "dynamic";
      c.has_dynamic_steps = true;
      c.kernels.push_back(nullptr);
      c.choices.push_back({c.provenance.back(), std::string(node.op().name), step.kernel, {}});
      return;
    }
    const std::vector<Type> inputs = types_of(c.plan, step.inputs);
    const std::vector<Type> outputs = types_of(c.plan, step.outputs);
    const std::vector<Tensor> constants = constants_of(c.plan, step.inputs);
    KernelSelection selection;
    try {
      selection = options_.catalog.select({node.op(), node.attributes(), inputs, outputs, constants, options_.threads});
    } catch (...) {
      rethrow_with_place(describe_step(c, step));
    }
    step.kernel = selection.name;
    if (selection.kernel) {
      step.scratch_bytes = selection.kernel->scratch_bytes();
      step.in_place = node.op().traits.in_place_ok && selection.kernel->in_place_ok();
      c.memory.weight_bytes += selection.kernel->weight_bytes();
    } else {
      ++missing_[fmt::format("{} ({})", node.op().name, join(selection.refusals, "; "))];
    }
    c.kernels.push_back(std::move(selection.kernel));
    c.choices.push_back({c.provenance.back(), std::string(node.op().name), step.kernel, std::move(selection.refusals)});
  }

  void throw_if_missing() const {
    if (missing_.empty()) return;
    std::string list;
    for (const auto& [what, count] : missing_) list += fmt::format("\n  {} x {}", count, what);
    throw UnsupportedError("[compile] kernels: none for" + list);
  }

  const PlanOptions& options_;
  std::shared_ptr<CompiledPlan> compiled_;
  std::map<std::string, int> missing_;
};

}  // namespace

std::shared_ptr<const CompiledPlan> compile_plan(std::shared_ptr<const Graph> graph, const KnownValues& known,
                                                 const PlanOptions& options) {
  return PlanCompiler(std::move(graph), known, options).run();
}

std::string describe_step(const CompiledPlan& compiled, const Step& step) {
  std::vector<std::string> inputs;
  for (const SlotIndex s : step.inputs) {
    inputs.push_back(s == kNoSlot ? "none" : to_string(compiled.plan.slots[s].type));
  }
  return fmt::format("{}: {}", describe(*compiled.graph, step.node), join(inputs, ", "));
}

}  // namespace autograph
