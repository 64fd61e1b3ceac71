#include "runtime/compiled_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "autograph/device.h"
#include "base/check.h"
#include "base/join.h"
#include "base/parallel_for.h"
#include "base/rethrow.h"
#include "runtime/choose_kernels.h"
#include "runtime/cold_states.h"
#include "runtime/memory/memory_meter.h"
#include "runtime/step_error.h"
#include "tensor/size_of.h"

namespace autograph {
namespace {

// Fewer steps than this are not worth a thread.
constexpr size_t kStepsPerThread = 8;
// Builds with internal checks look at the memory of every plan, unless that would take long.
#ifdef NDEBUG
constexpr bool kVerifiesMemory = false;
#else
constexpr bool kVerifiesMemory = true;
#endif
constexpr size_t kMaxVerified = 2000;
// Of choosing kernels, when some are refused; each refuses all that are wrong among those chosen.
constexpr int kMaxRounds = 1000;

// Bytes that the host has for so many. What a device has of its own it says when it is asked for it.
size_t available_bytes(const PlanOptions& options, size_t wanted) {
  return options.memory ? std::numeric_limits<size_t>::max() : available_memory_bytes(wanted);
}

// On a device of its own memory states that stay there count, too.
void check_budget(const CompiledPlan& compiled, const PlanOptions& options) {
  const size_t budget_bytes = options.memory_budget_bytes;
  const size_t arena_bytes = compiled.plan.arena_bytes;
  size_t output_bytes = 0;
  for (const PlanOutput& output : compiled.plan.outputs) output_bytes += compiled.plan.slots[output.slot].bytes;
  if (options.memory) output_bytes = bytes_on_device(compiled) - arena_bytes;
  size_t needed = 0;
  const bool overflow = __builtin_add_overflow(arena_bytes, output_bytes, &needed);
  const bool over_budget = budget_bytes > 0 && needed > budget_bytes;
  const size_t available = available_bytes(options, overflow ? std::numeric_limits<size_t>::max() : needed);
  if (!overflow && !over_budget && needed <= available) return;
  throw BudgetError(fmt::format("[memory] plan: {} bytes (arena {}, outputs {}) exceed {}; the largest tensors are:{}",
                                needed, arena_bytes, output_bytes,
                                over_budget ? fmt::format("the budget of {} bytes", budget_bytes)
                                            : fmt::format("the available {} bytes", available),
                                describe_largest(compiled.plan, *compiled.graph)));
}

// Refuses a single tensor that cannot fit before the planner and the kernels see it.
void check_single_tensors(const CompiledPlan& compiled, const PlanOptions& options) {
  const auto is_made = [](const Slot& slot) { return slot.place == Place::arena || slot.place == Place::output; };
  size_t largest = 0;
  for (const Slot& slot : compiled.plan.slots) largest = is_made(slot) ? std::max(largest, slot.bytes) : largest;
  const size_t available = available_bytes(options, largest), budget_bytes = options.memory_budget_bytes;
  const size_t limit = budget_bytes > 0 ? std::min(budget_bytes, available) : available;
  for (const Slot& slot : compiled.plan.slots) {
    if (!is_made(slot)) continue;
    AG_CHECK_USER(slot.bytes <= limit, BudgetError,
                  "[memory] tensor: {} takes {} bytes, {} may be used (made by {}); the largest tensors are:{}",
                  to_string(slot.type), slot.bytes, limit,
                  describe(*compiled.graph, compiled.graph->value(slot.value).producer()),
                  describe_largest(compiled.plan, *compiled.graph));
  }
}

}  // namespace

void rethrow_with_largest(const CompiledPlan& compiled) {
  rethrow_changed([&](const std::string& message) {
    return fmt::format("{}; the largest tensors are:{}", message, describe_largest(compiled.plan, *compiled.graph));
  });
}

namespace {

// Between a state that waits in the memory of the host and that of the stream.
class TransferKernel : public Kernel {
 public:
  explicit TransferKernel(bool to_device) : to_device_(to_device) {}
  void run(const KernelArgs& args) const override {
    const TensorView &from = args.inputs[0], &to = args.outputs[0];
    const Memory& memory = *args.stream->memory();
    if (to_device_) {
      memory.write(to.raw(), from.raw(), to.size_bytes(), args.stream);
    } else {
      memory.read(to.raw(), from.raw(), to.size_bytes(), args.stream);
    }
  }

 private:
  bool to_device_;
};

class PlanCompiler {
 public:
  // `on_host` are the states that wait there.
  PlanCompiler(std::shared_ptr<const Graph> graph, const KnownValues& known, const PlanOptions& options,
               std::vector<uint32_t> on_host)
      : options_(options), compiled_(std::make_shared<CompiledPlan>()) {
    compiled_->graph = std::move(graph);
    compiled_->states_on_host = std::move(on_host);
    if (!options.states.empty()) states_ = std::make_shared<StateKernels>(compiled_->graph, options.states);
    const PlannedNodes planned = prepare_nested(known);
    compiled_->plan = options.schedule
                          ? plan_scheduled(*compiled_->graph, known, *options.schedule, options.threads, planned)
                          : plan_sequential(*compiled_->graph, known, planned);
    for (const Donation& donation : options.donations) share(donation);
  }

  // Null where a kernel was refused when it was there, so that another must be chosen, and where more states must wait
  // on the host.
  std::shared_ptr<const CompiledPlan> run() {
    CompiledPlan& c = *compiled_;
    check_single_tensors(c, options_);
    KernelCost estimate;
    std::vector<StepLayouts> layouts;
    choices_ = choose_kernels(c.plan, *c.graph,
                              {options_.catalog, options_.cost ? *options_.cost : estimate, options_.threads,
                               options_.exact, options_.host_threads, options_.judge, options_.team, known_contents()},
                              layouts);
    insert_reorders(c.plan, layouts);
    insert_transfers(c.plan, c.states_on_host);
    find_waits(c.plan);
    count_threads();
    for (const Slot& slot : c.plan.slots) {
      c.slot_dims.push_back(slot.type.is_static() ? slot.type.shape().static_dims() : Dims());
    }
    if (!prepare_steps()) return nullptr;
    throw_if_missing();
    place_parts(c.plan);
    place_shared(c.plan);
    place_memory(c.plan);
    if (kVerifiesMemory && c.plan.steps.size() <= kMaxVerified) verify_memory(c.plan);
    if (options_.memory && options_.memory_budget_bytes > 0 && !options_.release_from) {
      colder_ = find_cold_states(c, options_.memory_budget_bytes);
      if (!colder_.empty()) return nullptr;
    }
    check_budget(c, options_);
    c.memory.arena_bytes = c.plan.arena_bytes;
    c.memory.sum_of_tensors_bytes = c.plan.sum_of_tensors_bytes;
    c.memory.lower_bound_bytes = c.plan.lower_bound_bytes;
    for (const Tensor& weight : c.plan.weights) c.memory.weight_bytes += weight.raw() ? weight.size_bytes() : 0;
    try {
      if (options_.memory) copy_weights();
    } catch (const BudgetError&) {
      rethrow_with_largest(c);
    }
    return compiled_;
  }

  // States that must wait on the host besides those that do.
  const std::vector<uint32_t>& colder() const { return colder_; }

 private:
  void share(const Donation& donation) {
    Plan& plan = compiled_->plan;
    const Slot& in = plan.slots[plan.inputs[donation.input]];
    const Slot& out = plan.slots[plan.outputs[donation.output].slot];
    AG_CHECK_USER(in.type.is_tensor() && out.type.is_tensor() && in.type.dtype() == out.type.dtype(), TypeError,
                  "[compile] donations: input {} is {}, output {} is {}", donation.input, to_string(in.type),
                  donation.output, to_string(out.type));
    AG_CHECK_USER(in.type.is_static() && in.type == out.type, ShapeError,
                  "[compile] donations: input {} is {}, output {} is {}", donation.input, to_string(in.type),
                  donation.output, to_string(out.type));
    plan.shared.push_back({static_cast<uint32_t>(donation.input), static_cast<uint32_t>(donation.output)});
  }

  // Kernels of the nodes with nested graphs that can have one, and these nodes.
  PlannedNodes prepare_nested(const KnownValues& known) {
    PlannedNodes planned;
    if (!options_.nested) return planned;
    const Graph& graph = *compiled_->graph;
    const auto is_known = [&](ValueId v) { return known.count(v.index) > 0; };
    for (const NodeId id : graph.nodes()) {
      const Node& node = graph.node(id);
      if (!node.op().traits.control_flow || !node.op().evaluate) continue;
      if (std::all_of(node.outputs().begin(), node.outputs().end(), is_known)) continue;
      if (std::unique_ptr<Kernel> kernel = nested_kernel(node)) {
        nested_.emplace(id.index, std::move(kernel));
        planned.insert(id.index);
      }
    }
    return planned;
  }

  std::unique_ptr<Kernel> nested_kernel(const Node& node) const {
    const auto types_of = [&](const std::vector<ValueId>& values) {
      std::vector<Type> types;
      for (const ValueId v : values) types.push_back(v.is_valid() ? compiled_->graph->type(v) : Type());
      return types;
    };
    const std::vector<Type> inputs = types_of(node.inputs()), outputs = types_of(node.outputs());
    const auto is_plain_if_given = [&](const Type& type) { return type.kind() == Type::Kind::none || is_plain(type); };
    if (!std::all_of(inputs.begin(), inputs.end(), is_plain_if_given)) return nullptr;
    if (!std::all_of(outputs.begin(), outputs.end(), is_plain)) return nullptr;
    std::vector<Tensor> constants;
    for (const ValueId v : node.inputs()) constants.push_back(states_ ? states_->known_elements(v) : Tensor());
    return options_.nested({.op = node.op(),
                            .attributes = node.attributes(),
                            .inputs = inputs,
                            .outputs = outputs,
                            .constants = constants});
  }

  // What preparing a step gives.
  struct Made {
    std::string name;
    KernelCandidate candidate;
    std::unique_ptr<Kernel> kernel;
    std::vector<std::string> refusals;
  };

  // Kernels are made on several threads at once: most of the time goes into packing weights. False where one of them
  // has been refused.
  bool prepare_steps() {
    CompiledPlan& c = *compiled_;
    std::vector<Made> made(c.plan.steps.size());
    std::vector<StepChoice*> choice_of(c.plan.steps.size(), nullptr);
    size_t number = 0;  // of steps that are not reorders
    for (size_t i = 0; i < made.size(); ++i) {
      if (!c.plan.steps[i].is_reorder()) choice_of[i] = &choices_[number++];
    }
    const std::vector<int> num_readers = options_.release_from ? count_readers() : std::vector<int>();
    // Where kernels must be run first, their weights stay: another kernel may have to pack them.
    const bool releases_at_once = options_.release_from && !has_to_run(choice_of);
    const int threads = std::min(options_.threads, 1 + static_cast<int>(made.size() / kStepsPerThread));
    parallel_for(
        made.size(), threads,
        [&](size_t i) {
          const Step& step = c.plan.steps[i];
          options_.host_threads.set(options_.threads_of(step));
          made[i] = choice_of[i] ? make_step(step, *choice_of[i]) : make_reorder(step);
          if (made[i].kernel && releases_at_once) release_weights(step, *made[i].kernel, num_readers);
        },
        options_.team);
    if (options_.judge && !pass_judge(made)) return false;
    for (size_t i = 0; i < made.size(); ++i) {
      const bool releases_now = options_.release_from && !releases_at_once && made[i].kernel;
      if (releases_now) release_weights(c.plan.steps[i], *made[i].kernel, num_readers);
      add(c.plan.steps[i], std::move(made[i]));
    }
    return true;
  }

  bool has_to_run(const std::vector<StepChoice*>& choice_of) const {
    if (!options_.judge) return false;
    for (size_t i = 0; i < choice_of.size(); ++i) {
      const Step& step = compiled_->plan.steps[i];
      if (!choice_of[i] || step.kind != StepKind::fixed || choice_of[i]->candidates.empty()) continue;
      const StepCall types(compiled_->plan, step, known_contents());
      if (options_.judge->has_to_run(call_of(step, types), choice_of[i]->candidates.front())) return true;
    }
    return false;
  }

  // Are all kernels right, as far as the judge can tell? Kernels run here, one after the other.
  bool pass_judge(const std::vector<Made>& made) const {
    bool all_right = true;
    for (size_t i = 0; i < made.size(); ++i) {
      const Step& step = compiled_->plan.steps[i];
      if (!made[i].kernel || !made[i].candidate.kernel) continue;
      options_.host_threads.set(options_.threads_of(step));
      const StepCall types(compiled_->plan, step, known_contents());
      all_right = options_.judge->judge(call_of(step, types), made[i].candidate, *made[i].kernel).empty() && all_right;
    }
    options_.host_threads.set(options_.threads);
    return all_right;
  }

  KernelCall call_of(const Step& step, const StepCall& types) const {
    const Node& node = compiled_->graph->node(step.node);
    return {node.op(),      node.attributes(), types.inputs,
            types.outputs,  types.constants,   options_.threads_of(step),
            options_.exact, nullptr,           options_.packed};
  }

  std::span<const StateContents> known_contents() const {
    return states_ ? std::span<const StateContents>(states_->states()) : std::span<const StateContents>();
  }

  // Streams may take more threads together than the run has.
  void count_threads() {
    CompiledPlan& c = *compiled_;
    c.num_threads = options_.host_threads.are_used() ? options_.threads : 1;
    for (const PlanStage& stage : c.plan.stages) {
      const int threads = options_.host_threads.are_used() ? stage.threads : 1;
      c.num_threads = std::max(c.num_threads, static_cast<int>(stage.streams.size()) * threads);
    }
  }

  // By slot: how many steps and outputs read it or a view of it.
  std::vector<int> count_readers() const {
    const Plan& plan = compiled_->plan;
    std::vector<int> count(plan.slots.size(), 0);
    for (const Step& step : plan.steps) {
      for (const SlotIndex s : step.inputs) {
        if (s != kNoSlot) ++count[plan.slots[s].root];
      }
    }
    for (const PlanOutput& output : plan.outputs) ++count[plan.slots[output.slot].root];
    return count;
  }

  // Frees the constants that this step alone has read and of which its kernel keeps a copy of its own. Steps are
  // prepared at the same time, but no two of them come here with the same constant.
  void release_weights(const Step& step, const Kernel& kernel, const std::vector<int>& num_readers) {
    Plan& plan = compiled_->plan;
    for (size_t k = 0; k < step.inputs.size(); ++k) {
      if (step.inputs[k] == kNoSlot || kernel.reads_input(k)) continue;
      const Slot& slot = plan.slots[plan.slots[step.inputs[k]].root];
      if (slot.place != Place::weight || num_readers[plan.slots[step.inputs[k]].root] != 1) continue;
      const Tensor& weight = plan.weights[slot.index];
      const Tensor empty = Tensor::wrap(weight.dtype(), weight.dims(), nullptr, nullptr);
      if (options_.release_from->value(slot.value).is_constant())
        options_.release_from->set_constant(slot.value, empty);
      plan.weights[slot.index] = empty;
    }
  }

  // Constants that kernels or outputs read, in the memory of the device.
  void copy_weights() {
    CompiledPlan& c = *compiled_;
    c.weights.resize(c.plan.weights.size());
    const auto copy = [&](SlotIndex s) {
      const Slot& root = c.plan.slots[c.plan.slots[s].root];
      if (root.place != Place::weight || c.weights[root.index].memory()) return;
      const Tensor& weight = c.plan.weights[root.index];
      if (weight.raw() && weight.dtype() != DType::string) c.weights[root.index] = weight.to(options_.memory).buffer();
    };
    for (size_t i = 0; i < c.plan.steps.size(); ++i) {
      const Step& step = c.plan.steps[i];
      if (step.kind == StepKind::evaluate) continue;  // which looks at those of the host
      for (size_t k = 0; k < step.inputs.size(); ++k) {
        if (step.inputs[k] != kNoSlot && (!c.kernels[i] || c.kernels[i]->reads_input(k))) copy(step.inputs[k]);
      }
    }
    for (const PlanOutput& output : c.plan.outputs) copy(output.slot);
  }

  void add(Step& step, Made made) {
    CompiledPlan& c = *compiled_;
    step.kernel = std::move(made.name);
    if (Kernel* kernel = made.kernel.get()) {
      step.scratch_bytes = kernel->scratch_bytes();
      if (!options_.keeps_inputs) step.in_place_inputs = kernel->in_place_inputs();
      step.part_offsets = kernel->part_offsets();
      step.joined_row_bytes = kernel->joined_row_bytes();
      step.spaced_row_bytes = kernel->spaced_row_bytes();
      step.piece_offsets = kernel->piece_offsets();
      c.memory.weight_bytes += kernel->weight_bytes();
    } else if (step.kind == StepKind::fixed) {
      ++missing_[fmt::format("{} ({})", op_name(c, step), join(made.refusals, "; "))];
    } else {
      c.has_dynamic_steps = true;
    }
    c.provenance.push_back(provenance_of(step));
    const bool can_renew = made.candidate.kernel || dynamic_cast<PackingKernel*>(made.kernel.get());
    if (made.kernel && can_renew && states_ && states_->knows_states(c.plan, step)) {
      states_->add(c.plan, c.kernels.size(), std::move(made.kernel));
      c.state_kernels = states_;
    }
    c.kernels.push_back(std::move(made.kernel));
    c.candidates.push_back(std::move(made.candidate));
    c.choices.push_back({c.provenance.back(), std::string(op_name(c, step)), step.kernel, std::move(made.refusals)});
  }

  std::string provenance_of(const Step& step) const {
    const Graph& graph = *compiled_->graph;
    if (!step.is_reorder()) {
      const Node& node = graph.node(step.node);
      return node.provenance().empty() ? std::string(node.op().name) : node.provenance().to_string();
    }
    const Value& value = graph.value(compiled_->plan.slots[step.inputs[0]].value);
    return value.producer().is_valid() ? graph.node(value.producer()).provenance().to_string() : value.name();
  }

  Made make_reorder(const Step& step) const {
    if (step.is_transfer()) return {step.kernel, {}, std::make_unique<TransferKernel>(step.kernel == kToDevice), {}};
    const Slot& from = compiled_->plan.slots[step.inputs[0]];
    const Slot& to = compiled_->plan.slots[step.outputs[0]];
    return {fmt::format("reorder {} -> {}", to_string(from.layout), to_string(to.layout)),
            {},
            options_.catalog.prepare_reorder({from.type, from.layout, to.layout, options_.threads_of(step)}),
            {}};
  }

  Made make_step(const Step& step, StepChoice& choice) {
    if (step.kind != StepKind::fixed) {
      return {step.kind == StepKind::evaluate ? "evaluate" : "dynamic", {}, nullptr, {}};
    }
    const CompiledPlan& c = *compiled_;
    const auto nested = nested_.find(step.node.index);
    if (nested != nested_.end()) return {"nested plan", {}, std::move(nested->second), {}};
    const StepCall types(c.plan, step, known_contents());
    Made made;
    try {
      for (const KernelCandidate& candidate : choice.candidates) {
        Prepared prepared = options_.catalog.prepare(call_of(step, types), candidate);
        made.kernel = std::move(prepared.kernel);
        made.name = candidate.name();
        made.candidate = candidate;
        if (made.kernel) break;
        choice.refusals.push_back(fmt::format("{}: {}", made.name, prepared.refusal));
      }
    } catch (...) {
      rethrow_with_place(describe_step(c, step));
    }
    made.refusals = std::move(choice.refusals);
    return made;
  }

  void throw_if_missing() const {
    if (missing_.empty()) return;
    std::string list;
    for (const auto& [what, count] : missing_) list += fmt::format("\n  {} x {}", count, what);
    throw UnsupportedError("[compile] kernels: none for" + list);
  }

  const PlanOptions& options_;
  std::shared_ptr<CompiledPlan> compiled_;
  std::vector<StepChoice> choices_;  // parallel to the steps before reorders come between them
  std::unordered_map<uint32_t, std::unique_ptr<Kernel>> nested_;  // by node
  std::map<std::string, int> missing_;
  std::shared_ptr<StateKernels> states_;  // null: kernels know no states
  std::vector<uint32_t> colder_;
};

}  // namespace

std::shared_ptr<const CompiledPlan> compile_plan(const std::shared_ptr<const Graph>& graph, const KnownValues& known,
                                                 const PlanOptions& options) {
  std::vector<uint32_t> on_host;
  for (int round = 0;; ++round) {
    // Each round refuses a kernel that was among the candidates, or leaves a state more on the host, so that rounds
    // end.
    AG_CHECK(round < kMaxRounds, "kernels are refused again and again: the judge must know what it refused");
    PlanCompiler compiler(graph, known, options, on_host);
    if (auto compiled = compiler.run()) return compiled;
    on_host.insert(on_host.end(), compiler.colder().begin(), compiler.colder().end());
  }
}

std::string_view op_name(const CompiledPlan& compiled, const Step& step) {
  if (step.is_transfer()) return "copy";
  return step.is_reorder() ? "reorder" : compiled.graph->node(step.node).op().name;
}

std::string describe_step(const CompiledPlan& compiled, const Step& step) {
  std::vector<std::string> inputs;
  for (const SlotIndex s : step.inputs) {
    inputs.push_back(s == kNoSlot ? "none" : to_string(compiled.plan.slots[s].type));
  }
  return fmt::format("{}: {}",
                     step.is_reorder() ? std::string(op_name(compiled, step)) : describe(*compiled.graph, step.node),
                     join(inputs, ", "));
}

}  // namespace autograph
