#include "engine/executable.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "autograph/cpu_count.h"
#include "autograph/op_def.h"
#include "autograph/verify.h"
#include "base/check.h"
#include "base/rethrow.h"
#include "engine/check/attestation.h"
#include "engine/check/node_by_node.h"
#include "engine/nested/plan_session.h"
#include "engine/state_run.h"
#include "engine/thread_scope.h"
#include "ops/defs.h"
#include "runtime/cold_states.h"
#include "runtime/observe/launch_clock.h"
#include "runtime/threads/core_gate.h"
#include "tensor/change_tensors.h"
#include "tensor/size_of.h"

namespace autograph {
namespace {

// Plans kept for graphs with symbolic dims.
constexpr size_t kCachedPlans = 16;
// After so many plans one after the other that ran once, the shapes of a loop's states are taken to change every turn.
constexpr int kPlansRunOnce = 4;

// Lets kernels use all threads again when a run is over.
class LimitScope {
 public:
  LimitScope(const Device& device, bool is_limited) : host_(is_limited ? &device.host_threads() : nullptr) {}
  ~LimitScope() {
    if (host_) host_->limit(CoreWatch::kNoLimit);
  }
  LimitScope(const LimitScope&) = delete;
  LimitScope& operator=(const LimitScope&) = delete;

 private:
  const HostThreads* host_;
};

// Binds the calling thread and its team to processors while it lives, where that is asked for.
class PinScope {
 public:
  PinScope(const Device& device, bool pins, int threads) : host_(pins ? &device.host_threads() : nullptr) {
    if (host_) host_->pin(threads);
  }
  ~PinScope() {
    if (host_) host_->unpin();
  }
  PinScope(const PinScope&) = delete;
  PinScope& operator=(const PinScope&) = delete;

 private:
  const HostThreads* host_;
};

bool has_static_inputs(const Graph& graph) {
  return std::all_of(graph.inputs().begin(), graph.inputs().end(),
                     [&](ValueId v) { return !graph.type(v).is_tensor() || graph.type(v).is_static(); });
}

// Does an extent change from run to run that is not the first, a batch? Those come in few sizes, which then come again.
bool has_open_extents_behind_batch(const Graph& graph) {
  return std::any_of(graph.inputs().begin(), graph.inputs().end(), [&](ValueId v) {
    if (!graph.type(v).is_tensor()) return false;
    const Shape& shape = graph.type(v).shape();
    if (!shape.has_rank()) return true;
    for (int64_t a = 1; a < shape.rank(); ++a) {
      if (!shape[a].is_known()) return true;
    }
    return false;
  });
}

// The same elements in `memory`, strings on the host.
Datum moved(Datum datum, const Memory* memory) {
  return change_tensors(
      std::move(datum),
      [&](const Tensor& t) { return t.is_present() && t.dtype() != DType::string && t.buffer().memory() != memory; },
      [&](const Tensor& t) { return t.to(memory); });
}

}  // namespace

// ---- PlanEntry -------------------------------------------------------------------------------------------------

PlanEntry::PlanEntry(std::shared_ptr<const CompiledPlan> compiled, const std::vector<Type>& inputs,
                     std::vector<std::shared_ptr<Executable::Impl>> nested, std::shared_ptr<ArenaPool> arenas,
                     CompileReport report)
    : compiled_(std::move(compiled)),
      nested_(std::move(nested)),
      arenas_(std::move(arenas)),
      report_(std::move(report)) {
  for (const Type& type : inputs) {
    Key& key = keys_.emplace_back();
    if (!type.is_tensor()) continue;
    key.dtype = type.dtype();
    for (const Dim& dim : type.shape().dims()) key.dims.push_back(dim.value_or(kOpen));
  }
}

bool PlanEntry::matches(const RunInputs& inputs) const {
  const auto fits = [](int64_t extent, int64_t expected) { return extent == expected || expected == kOpen; };
  for (size_t i = 0; i < keys_.size(); ++i) {
    const Tensor* tensor = inputs.tensor(i);
    if ((tensor ? tensor->dtype() : DType::undefined) != keys_[i].dtype) return false;
    if (!tensor) continue;
    const Dims &dims = tensor->dims(), &expected = keys_[i].dims;
    if (!std::equal(dims.begin(), dims.end(), expected.begin(), expected.end(), fits)) return false;
  }
  return true;
}

Type PlanEntry::input_type(size_t i) const {
  if (keys_[i].dtype == DType::undefined) return {};
  std::vector<Dim> dims;
  for (const int64_t extent : keys_[i].dims) dims.push_back(extent == kOpen ? Dim::unknown() : Dim(extent));
  return {keys_[i].dtype, Shape(std::move(dims))};
}

std::shared_ptr<Launchable> PlanEntry::acquire(const Device& device) {
  std::shared_ptr<Launchable> launchable;
  {
    const std::lock_guard lock(mutex_);
    if (!pool_.empty()) {
      launchable = std::move(pool_.back());
      pool_.pop_back();
    }
  }
  try {
    if (!launchable) launchable = device.record(compiled_);
    launchable->bind_arena(arenas_->take(compiled_->plan.arena_bytes, launchable->arena_address(), device.memory()));
  } catch (const BudgetError&) {
    rethrow_with_largest(*compiled_);
  }
  return launchable;
}

void PlanEntry::give_back(std::shared_ptr<Launchable> launchable) {
  launchable->release();
  arenas_->give_back(launchable->take_arena());
  const std::lock_guard lock(mutex_);
  pool_.push_back(std::move(launchable));
}

// A launchable taken from the pool; goes back when the run is over, however it ends.
class Executable::Impl::Lease {
 public:
  Lease(const Device& device, std::shared_ptr<PlanEntry> entry)
      : entry_(std::move(entry)), launchable_(entry_->acquire(device)) {}
  ~Lease() { entry_->give_back(std::move(launchable_)); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Launchable& launchable() { return *launchable_; }

 private:
  std::shared_ptr<PlanEntry> entry_;
  std::shared_ptr<Launchable> launchable_;
};

// ---- Impl ------------------------------------------------------------------------------------------------------

Executable::Impl::Impl(Graph graph, const CompileOptions& options, Nesting nesting, SharedByPlans shared)
    : options_(options),
      device_(get_device(options.device, options.precision)),
      output_memory_(options.keep_on_device && nesting == Nesting::none ? device_.memory() : nullptr),
      threads_(options.threads > 0 ? options.threads : usable_cpu_count()),
      nesting_(nesting),
      shared_(std::move(shared)),
      run_options_{device_.catalog(),     threads_, options.check_nan != NanCheck::off,
                   options.profile,       nullptr,  nullptr,
                   device_.host_threads()} {
  if (output_memory_) output_buffers_.emplace(output_memory_);
  run_options_.exact = options_.exact;
  if (Verdicts* verdicts = verdicts_of(device_, options_)) {
    Attester::MayRun may_attest;
    if (options_.expert.may_try) {
      may_attest = [this](std::string_view kernel) { return options_.expert.may_try(KernelTrial::attest, kernel); };
    }
    judge_.emplace(*verdicts, error_model_of(options_), options_.attest || options_.tune, &device_, may_attest);
    run_options_.judge = &*judge_;
  }
  const bool can_be_limited = device_.host_threads().can_be_limited() && threads_ > 1;
  if (!options_.expert.fixed_threads && can_be_limited) run_options_.watch = &CoreWatch::of_process();
  run_options_.run_nested = [this](const GraphRef& graph, const std::vector<Datum>& inputs,
                                   const std::shared_ptr<MemoryMeter>& meter) {
    return nested_of(graph)->run(RunInputs(inputs), meter);
  };
  run_options_.open_nested = [this](const GraphRef& graph, const std::vector<Datum>& inputs) {
    return nested_of(graph)->open_session(inputs);
  };
  if (!is_nested()) open_states(graph);
  if (!is_nested() && options_.check_nan == NanCheck::steps) {
    by_node_ = std::make_unique<NodeByNode>(graph, options_, *states_);
  }
  run_options_.packed = shared_.packed.get();
  if (is_nested() || !has_static_inputs(graph)) {
    options_.expert.schedule = nullptr;  // which is one for this graph and for shapes that are known
    // States share what is packed with executables that may know their shapes.
    if (!is_nested() && graph.states().empty() && has_open_extents_behind_batch(graph)) {
      shared_.packed->expect_other_extents();
    }
    OpenGraph open = prepare_open_graph(std::move(graph), device_, options_, &open_report_.passes);
    graph_ = std::make_shared<const Graph>(std::move(open.graph));
    flushed_ = std::move(open.flushed);
    return;
  }
  std::vector<Type> types;
  for (const ValueId v : graph.inputs()) types.push_back(graph.type(v).is_tensor() ? graph.type(v) : Type());
  entries_.push_front(build(std::move(graph), types));
  graph_ = entries_.front()->compiled()->graph;
}

Executable::Impl::~Impl() = default;

void Executable::Impl::open_states(const Graph& graph) {
  states_ = options_.states ? *options_.states : StateStore();
  states_->add(graph);
  if (!graph.states().empty()) shared_.packed = states_->impl().packed();
  for (const ValueId state : graph.states()) {
    stored_states_.push_back(&states_->impl().state(graph.value(state).name()));
  }
  options_.states.reset();  // nested graphs have none
  std::set<size_t> inputs;
  std::set<size_t> outputs;
  for (const Donation& donation : options_.donations) {
    const bool is_there = donation.input < graph.inputs().size() && donation.output < graph.outputs().size();
    AG_CHECK_USER(is_there, ValueError, "[compile] donations: input {} of {}, output {} of {}", donation.input,
                  graph.inputs().size(), donation.output, graph.outputs().size());
    AG_CHECK_USER(inputs.insert(donation.input).second && outputs.insert(donation.output).second, ValueError,
                  "[compile] donations: input {} or output {} stands there twice", donation.input, donation.output);
  }
}

// Plans of several shapes may share nested graphs.
std::vector<std::shared_ptr<Executable::Impl>> Executable::Impl::compile_nested(const Graph& graph) const {
  std::vector<std::shared_ptr<Impl>> compiled;
  for (const NodeId id : graph.nodes()) {
    const OpDef& op = graph.node(id).op();
    // Only ops that are evaluated run nested graphs through the engine; others have kernels for the whole.
    if (!op.evaluate) continue;
    const bool repeats = nesting_ == Nesting::repeatedly || &op != &if_def();
    for (const auto& [name, value] : graph.node(id).attributes()) {
      const auto* nested = std::get_if<GraphRef>(&value);
      if (!nested) continue;
      std::shared_ptr<Impl> impl = find_nested(**nested);
      if (!impl) {
        impl = std::make_shared<Impl>(**nested, options_, repeats ? Nesting::repeatedly : Nesting::once, shared_);
      }
      const std::lock_guard lock(nested_mutex_);
      std::erase_if(nested_graphs_, [](const auto& entry) { return entry.second.expired(); });
      // Another thread may have been faster.
      std::weak_ptr<Impl>& known = nested_graphs_[nested->get()];
      if (std::shared_ptr<Impl> other = known.lock()) impl = std::move(other);
      known = impl;
      compiled.push_back(std::move(impl));
    }
  }
  return compiled;
}

std::shared_ptr<Executable::Impl> Executable::Impl::find_nested(const Graph& graph) const {
  const std::lock_guard lock(nested_mutex_);
  const auto it = nested_graphs_.find(&graph);
  return it == nested_graphs_.end() ? nullptr : it->second.lock();
}

std::shared_ptr<Executable::Impl> Executable::Impl::nested_of(const GraphRef& graph) const {
  std::shared_ptr<Impl> impl = find_nested(*graph);
  AG_CHECK(impl, "nested graph '{}' was not compiled", graph->name());
  return impl;
}

std::shared_ptr<PlanEntry> Executable::Impl::find_entry(const RunInputs& inputs) const {
  AG_CHECK_USER(inputs.size() == graph_->inputs().size(), ValueError, "[run] inputs: expected {}, got {}",
                graph_->inputs().size(), inputs.size());
  {
    const std::lock_guard lock(mutex_);
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (!(*it)->matches(inputs)) continue;
      entries_.splice(entries_.begin(), entries_, it);
      return entries_.front();
    }
  }
  if (!is_nested()) check_inputs(*graph_, inputs);
  std::shared_ptr<PlanEntry> entry = make_entry(plan_types(inputs), {});
  const std::lock_guard lock(mutex_);
  entries_.push_front(entry);
  if (entries_.size() > kCachedPlans) entries_.pop_back();
  return entry;
}

// The types to make a plan for: those of the inputs, but for extents that change from turn to turn, which stay open.
std::vector<Type> Executable::Impl::plan_types(const RunInputs& inputs) const {
  std::vector<Type> types;
  for (size_t i = 0; i < inputs.size(); ++i) types.push_back(inputs.tensor(i) ? inputs.tensor(i)->type() : Type());
  if (nesting_ != Nesting::repeatedly) return types;
  const std::lock_guard lock(mutex_);
  if (entries_.size() < kPlansRunOnce) return types;
  const auto last = std::next(entries_.begin(), kPlansRunOnce);
  const auto ran_once = [](const auto& entry) { return entry->num_runs() <= 1; };
  if (!std::all_of(entries_.begin(), last, ran_once)) return types;
  for (auto entry = entries_.begin(); entry != last; ++entry) {
    for (size_t i = 0; i < types.size(); ++i) {
      const Type seen = (*entry)->input_type(i);
      if (!types[i].is_tensor() || !seen.is_tensor() || seen.shape().rank() != types[i].shape().rank()) continue;
      Shape shape = types[i].shape();
      for (int64_t axis = 0; axis < shape.rank(); ++axis) {
        if (!shape[axis].same_as(seen.shape()[axis])) shape[axis] = Dim::unknown();
      }
      types[i] = Type(types[i].dtype(), std::move(shape));
    }
  }
  return types;
}

std::shared_ptr<PlanEntry> Executable::Impl::make_entry(const std::vector<Type>& types,
                                                        std::vector<StateContents> contents) const {
  Graph typed = *graph_;
  for (size_t i = 0; i < typed.inputs().size(); ++i) {
    const Type& declared = typed.type(typed.inputs()[i]);
    const bool takes_tensor = declared.is_tensor() || declared.kind() == Type::Kind::none;
    if (types[i].is_tensor() && takes_tensor) typed.set_type(typed.inputs()[i], types[i]);
  }
  // With these shapes passes may do what they could not while dims were symbols.
  infer_types(typed);
  return build(std::move(typed), types, std::move(contents));
}

void Executable::Impl::execute(Launchable& launchable, std::shared_ptr<MemoryMeter> meter) const {
  if (!meter && launchable.compiled().has_dynamic_steps) {
    meter = std::make_shared<MemoryMeter>(options_.memory_budget_bytes, launchable.compiled().memory.arena_bytes);
  }
  const ThreadScope threads(device_, threads_);
  // A nested run works on the processors of the run around it.
  std::optional<CoreGate::Pass> pass;
  if (!is_nested()) pass.emplace(CoreGate::of_process(), launchable.compiled().num_threads);
  const LimitScope limit(device_, run_options_.watch && !is_nested());
  // Where others are at work the system finds free processors better.
  const bool is_alone = !run_options_.watch || run_options_.watch->limit() >= threads_;
  const PinScope pins(device_, options_.expert.pin_threads && is_alone && !is_nested(), threads_);
  launchable.renew_kernels(run_options_);
  if (LaunchClock* clock = is_nested() ? nullptr : LaunchClock::of_this_thread()) {
    clock->add(launchable.time_us(run_options_, meter));
  } else {
    launchable.launch(run_options_, meter);
  }
  if (!options_.profile) return;
  const std::lock_guard lock(mutex_);
  profile_ = launchable.profile();
}

// This, unless a NaN comes in that the nodes have to be asked about one by one.
const Executable::Impl& Executable::Impl::chosen_for(const RunInputs& inputs) const {
  return by_node_ && by_node_->has_nan(inputs) ? by_node_->executable() : *this;
}

// In a catch block: a step made a NaN. Its nodes may run again where all that they read is still there.
void Executable::Impl::explain_nonfinite(const Launchable& launchable, const RunInputs& inputs) const {
  if (!by_node_) throw;
  if (!launchable.has_overwritten_inputs()) by_node_->name_node(inputs);
  rethrow_changed([](const std::string& message) {
    return message +
           "; states had been updated by then, so that the nodes could not run again one by one: "
           "NanCheck::nodes, --check-every-node, looks behind each";
  });
}

std::vector<Datum> Executable::Impl::run(const RunInputs& inputs, const std::shared_ptr<MemoryMeter>& meter) const {
  if (const Impl& chosen = chosen_for(inputs); &chosen != this) return chosen.run(inputs, meter);
  const std::shared_ptr<PlanEntry> entry = find_entry(inputs);
  entry->count_run();
  Lease lease(device_, entry);
  try {
    return run_on(lease.launchable(), inputs, meter);
  } catch (const NonfiniteError&) {
    explain_nonfinite(lease.launchable(), inputs);
  }
}

std::vector<Datum> Executable::Impl::run_on(Launchable& launchable, const RunInputs& inputs,
                                            const std::shared_ptr<MemoryMeter>& meter) const {
  for (size_t i = 0; i < inputs.size(); ++i) inputs.bind(launchable, i);
  StateRun states(states_, stored_states_, device_.memory(), launchable);
  const Plan& plan = launchable.compiled().plan;
  std::vector<Buffer> buffers = output_buffers(launchable);
  std::vector<Datum> outputs(graph_->outputs().size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (!launchable.is_fixed_output(k)) continue;
    const SlotIndex slot = plan.outputs[k].slot;
    const DType dtype = plan.slots[slot].type.dtype();
    const Dims& dims = launchable.compiled().slot_dims[slot];
    Tensor tensor = output_buffers_ ? Tensor::wrap(dtype, dims, std::move(buffers[k])) : Tensor::empty(dtype, dims);
    launchable.bind_output(k, tensor);
    outputs[k] = Datum(std::move(tensor));
  }
  execute(launchable, meter);
  states.finish();
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (!launchable.is_fixed_output(k)) outputs[k] = moved(launchable.take_output(k), output_memory_);
  }
  return outputs;
}

// By output, none for those that are not fixed; nothing where outputs go to the host. With a budget there is room for
// what the plan leaves of it; what a plan makes while running is not known before.
std::vector<Buffer> Executable::Impl::output_buffers(const Launchable& launchable) const {
  if (!output_buffers_) return {};
  const CompiledPlan& compiled = launchable.compiled();
  std::vector<size_t> sizes;
  for (size_t k = 0; k < graph_->outputs().size(); ++k) {
    const SlotIndex slot = compiled.plan.outputs[k].slot;
    sizes.push_back(launchable.is_fixed_output(k) ? size_of(compiled.plan.slots[slot].type) : 0);
  }
  size_t most = std::numeric_limits<size_t>::max();
  if (options_.memory_budget_bytes > 0) {
    const size_t outputs = std::accumulate(sizes.begin(), sizes.end(), size_t{0});
    most = compiled.has_dynamic_steps ? 0 : options_.memory_budget_bytes - (bytes_on_device(compiled) - outputs);
  }
  try {
    return output_buffers_->take(sizes, most);
  } catch (const BudgetError&) {
    rethrow_with_largest(compiled);
  }
}

std::unique_ptr<NestedSession> Executable::Impl::open_session(const std::vector<Datum>& inputs) const {
  std::shared_ptr<PlanEntry> entry = find_entry(RunInputs(inputs));
  if (!is_all_planned(*entry->compiled())) return nullptr;
  auto session = PlanSession::on_own_arena(*this, std::move(entry));
  for (size_t i = 0; i < inputs.size(); ++i) session->bind_input(i, inputs[i]);
  return session;
}

std::shared_ptr<PlanEntry> Executable::Impl::entry_for(const std::vector<Type>& types) const {
  std::vector<Datum> inputs;
  for (const Type& type : types) {
    inputs.push_back(type.is_tensor() ? Tensor::wrap(type.dtype(), type.shape().static_dims(), nullptr, nullptr)
                                      : Datum());
  }
  return find_entry(RunInputs(inputs));
}

std::shared_ptr<PlanEntry> Executable::Impl::entry_knowing(const std::vector<Type>& types,
                                                           std::vector<StateContents> contents) const {
  return make_entry(types, std::move(contents));
}

void Executable::Impl::renew_kernels(const CompiledPlan& compiled, const std::vector<StateContents>& contents) const {
  if (compiled.state_kernels) compiled.state_kernels->renew(compiled, contents, run_options_);
}

void Executable::Impl::run_into(const RunInputs& inputs, std::vector<Tensor>& outputs) const {
  if (const Impl& chosen = chosen_for(inputs); &chosen != this) return chosen.run_into(inputs, outputs);
  Lease lease(device_, find_entry(inputs));
  try {
    run_into_on(lease.launchable(), inputs, outputs);
  } catch (const NonfiniteError&) {
    explain_nonfinite(lease.launchable(), inputs);
  }
}

void Executable::Impl::run_into_on(Launchable& launchable, const RunInputs& inputs,
                                   std::vector<Tensor>& outputs) const {
  const Plan& plan = launchable.compiled().plan;
  AG_CHECK_USER(outputs.size() == graph_->outputs().size(), ValueError, "[run] outputs: expected {}, got {}",
                graph_->outputs().size(), outputs.size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    const SlotIndex slot = plan.outputs[k].slot;
    AG_CHECK_USER(launchable.is_fixed_output(k), ShapeError,
                  "[run] output {}: its size is known only after running; {}", k, "use run()");
    const bool fits = outputs[k].dtype() == plan.slots[slot].type.dtype() &&
                      outputs[k].dims() == launchable.compiled().slot_dims[slot];
    AG_CHECK_USER(fits, ShapeError, "[run] output {}: expected {}, got {}", k, to_string(plan.slots[slot].type),
                  to_string(outputs[k].type()));
    launchable.bind_output(k, outputs[k]);
  }
  check_memory(inputs, outputs, options_.donations);
  for (size_t i = 0; i < inputs.size(); ++i) inputs.bind(launchable, i);
  StateRun states(states_, stored_states_, device_.memory(), launchable);
  execute(launchable, nullptr);
  states.finish();
}

KernelTimes Executable::Impl::kernel_times() const {
  const std::lock_guard lock(mutex_);
  return kernel_times_;
}

std::vector<StepProfile> Executable::Impl::profile() const {
  const std::lock_guard lock(mutex_);
  return profile_;
}

CompileReport Executable::Impl::report() const {
  const std::lock_guard lock(mutex_);
  return entries_.empty() ? open_report_ : entries_.front()->report();
}

const Schedule& Executable::Impl::schedule() const {
  static const Schedule kSequential;
  return options_.expert.schedule ? *options_.expert.schedule : kSequential;
}

std::optional<double> Executable::Impl::simulated_latency_ms() const {
  std::call_once(is_simulated_, [this] { simulated_us_ = device_.latency_us(*graph_, schedule()); });
  return simulated_us_ ? std::optional(*simulated_us_ / 1e3) : std::nullopt;
}

bool Executable::Impl::has_plans() const {
  const std::lock_guard lock(mutex_);
  return !entries_.empty();
}

std::shared_ptr<const CompiledPlan> Executable::Impl::current_plan() const {
  const std::lock_guard lock(mutex_);
  return entries_.empty() ? nullptr : entries_.front()->compiled();
}

}  // namespace autograph
