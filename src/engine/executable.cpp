#include "engine/executable.h"

#include <algorithm>
#include <optional>

#include "autograph/cpu_count.h"
#include "autograph/op_def.h"
#include "autograph/verify.h"
#include "backends/sim/simulate.h"
#include "base/check.h"
#include "engine/attestation.h"
#include "engine/tune_in_network.h"
#include "runtime/core_gate.h"
#include "tune/measured_cost.h"

namespace autograph {
namespace {

// Plans kept for graphs with symbolic dims.
constexpr size_t kCachedPlans = 16;

// Sets the thread count of kernels for the calling thread while it lives.
class ThreadScope {
 public:
  ThreadScope(const Device& device, int threads) : device_(device) {
    if (device_.set_threads) previous_ = device_.set_threads(threads);
  }
  ~ThreadScope() {
    if (device_.set_threads) device_.set_threads(previous_);
  }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  const Device& device_;
  int previous_ = 1;
};

// Lets kernels use all threads again when a run is over.
class LimitScope {
 public:
  explicit LimitScope(void (*limit_threads)(int)) : limit_threads_(limit_threads) {}
  ~LimitScope() {
    if (limit_threads_) limit_threads_(CoreWatch::kNoLimit);
  }
  LimitScope(const LimitScope&) = delete;
  LimitScope& operator=(const LimitScope&) = delete;

 private:
  void (*limit_threads_)(int);
};

// Binds the calling thread and its team to processors while it lives, where that is asked for.
class PinScope {
 public:
  PinScope(const Device& device, bool pins, int threads) : unpin_(pins ? device.unpin_thread : nullptr) {
    if (pins && device.pin_threads) device.pin_threads(threads);
  }
  ~PinScope() {
    if (unpin_) unpin_();
  }
  PinScope(const PinScope&) = delete;
  PinScope& operator=(const PinScope&) = delete;

 private:
  void (*unpin_)();
};

bool has_static_inputs(const Graph& graph) {
  return std::all_of(graph.inputs().begin(), graph.inputs().end(),
                     [&](ValueId v) { return !graph.type(v).is_tensor() || graph.type(v).is_static(); });
}

}  // namespace

// ---- PlanEntry -------------------------------------------------------------------------------------------------

PlanEntry::PlanEntry(std::shared_ptr<const CompiledPlan> compiled, const RunInputs* inputs)
    : compiled_(std::move(compiled)) {
  const Graph& graph = *compiled_->graph;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    Key& key = keys_.emplace_back();
    const Type& type = graph.type(graph.inputs()[i]);
    if (inputs && inputs->tensor(i)) {
      key = {inputs->tensor(i)->dtype(), inputs->tensor(i)->dims()};
    } else if (!inputs && type.is_tensor()) {
      key = {type.dtype(), type.shape().static_dims()};
    }
  }
}

bool PlanEntry::matches(const RunInputs& inputs) const {
  for (size_t i = 0; i < keys_.size(); ++i) {
    const Tensor* tensor = inputs.tensor(i);
    if ((tensor ? tensor->dtype() : DType::undefined) != keys_[i].dtype) return false;
    if (tensor && tensor->dims() != keys_[i].dims) return false;
  }
  return true;
}

std::unique_ptr<RunContext> PlanEntry::acquire() {
  {
    const std::lock_guard lock(mutex_);
    if (!pool_.empty()) {
      std::unique_ptr<RunContext> context = std::move(pool_.back());
      pool_.pop_back();
      return context;
    }
  }
  return std::make_unique<RunContext>(compiled_);
}

void PlanEntry::give_back(std::unique_ptr<RunContext> context) {
  context->release();
  const std::lock_guard lock(mutex_);
  pool_.push_back(std::move(context));
}

// A context taken from the pool; goes back when the run is over, however it ends.
class Executable::Impl::Lease {
 public:
  explicit Lease(std::shared_ptr<PlanEntry> entry) : entry_(std::move(entry)), context_(entry_->acquire()) {}
  ~Lease() { entry_->give_back(std::move(context_)); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  RunContext& context() { return *context_; }

 private:
  std::shared_ptr<PlanEntry> entry_;
  std::unique_ptr<RunContext> context_;
};

// ---- Impl ------------------------------------------------------------------------------------------------------

Executable::Impl::Impl(Graph graph, const CompileOptions& options, bool nested)
    : options_(options),
      device_(get_device(options.device, options.precision)),
      threads_(options.threads > 0 ? options.threads : usable_cpu_count()),
      nested_(nested),
      run_options_{device_.catalog,     threads_,           options.check_nan, options.profile, nullptr,
                   device_.set_threads, device_.run_streams} {
  if (Verdicts* verdicts = verdicts_of(device_, options_)) {
    judge_.emplace(*verdicts, error_model_of(options_), options_.attest || options_.tune);
    run_options_.judge = &*judge_;
  }
  if (!options_.fixed_threads && device_.limit_threads && threads_ > 1) {
    run_options_.watch = &CoreWatch::of_process();
    run_options_.limit_threads = device_.limit_threads;
  }
  // A schedule is one for this graph and for shapes that are known.
  if (nested_ || !has_static_inputs(graph)) options_.schedule = nullptr;
  Graph prepared = options_.schedule ? std::move(graph) : prepare_graph(std::move(graph), device_, options_);
  const bool is_static = has_static_inputs(prepared) && !nested_;
  if (!is_static) {
    graph_ = std::make_shared<const Graph>(std::move(prepared));
  } else {
    const KnownValues known = infer_types(prepared);
    const auto graph = std::make_shared<Graph>(std::move(prepared));
    graph_ = graph;
    // Looking for NaNs reads weights, too.
    const bool release = options_.release_weights && !options_.check_nan;
    entries_.push_front(std::make_shared<PlanEntry>(make_plan(graph, known, release ? graph.get() : nullptr), nullptr));
    if (entries_.front()->compiled()->has_dynamic_steps) options_.schedule = nullptr;
  }
  compile_nested();
}

void Executable::Impl::compile_nested() {
  for (const NodeId id : graph_->nodes()) {
    // Only ops that are evaluated run nested graphs through the engine; others have kernels for the whole.
    if (!graph_->node(id).op().evaluate) continue;
    for (const auto& [name, value] : graph_->node(id).attributes()) {
      const auto* nested = std::get_if<GraphRef>(&value);
      if (!nested || nested_graphs_.count(nested->get()) > 0) continue;
      nested_graphs_[nested->get()] = std::make_unique<Impl>(**nested, options_, true);
    }
  }
  run_options_.run_nested = [this](const GraphRef& graph, const std::vector<Datum>& inputs,
                                   const std::shared_ptr<MemoryMeter>& meter) {
    const auto it = nested_graphs_.find(graph.get());
    AG_CHECK(it != nested_graphs_.end(), "nested graph '{}' was not compiled", graph->name());
    return it->second->run(RunInputs(inputs), meter);
  };
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
  if (!nested_) check_inputs(*graph_, inputs);
  std::shared_ptr<PlanEntry> entry = make_entry(&inputs);
  const std::lock_guard lock(mutex_);
  entries_.push_front(entry);
  if (entries_.size() > kCachedPlans) entries_.pop_back();
  return entry;
}

std::shared_ptr<PlanEntry> Executable::Impl::make_entry(const RunInputs* inputs) const {
  Graph typed = *graph_;
  for (size_t i = 0; i < typed.inputs().size(); ++i) {
    const Type& declared = typed.type(typed.inputs()[i]);
    const Tensor* tensor = inputs->tensor(i);
    const bool takes_tensor = declared.is_tensor() || declared.kind() == Type::Kind::none;
    if (tensor && takes_tensor) typed.set_type(typed.inputs()[i], tensor->type());
  }
  // With these shapes passes may do what they could not while dims were symbols.
  infer_types(typed);
  typed = prepare_graph(std::move(typed), device_, options_);
  const KnownValues known = infer_types(typed);
  return std::make_shared<PlanEntry>(make_plan(std::make_shared<const Graph>(std::move(typed)), known), inputs);
}

std::shared_ptr<const CompiledPlan> Executable::Impl::make_plan(std::shared_ptr<const Graph> graph,
                                                                const KnownValues& known, Graph* release_from) const {
  const ThreadScope threads(device_, threads_);
  PlanOptions options{device_.catalog,     threads_,    options_.memory_budget_bytes, options_.exact,
                      device_.set_threads, release_from};
  options.schedule = options_.schedule.get();
  options.judge = run_options_.judge;
  if (!options_.tune) return compile_plan(std::move(graph), known, options);
  MeasurementCache cache(cache_folder_of(options_));
  OnMeasure on_measure;
  if (options_.on_tune) {
    on_measure = [this](size_t step, size_t num_steps, size_t measured) {
      options_.on_tune({step, num_steps, measured, false});
    };
  }
  MeasuredCost cost(device_.identity ? device_.identity() : device_.name, cache, on_measure, device_.forget_kernels,
                    options_.may_tune);
  if (options_.kernel_times) cost.know(*options_.kernel_times);
  std::shared_ptr<const CompiledPlan> plan;
  if (options_.tune_in_network && !nested_ && !device_.machine) {
    // A plan file's choice stands; what a search had no time to finish is tuned again when there is some.
    const bool is_given = options_.kernel_times && has_network(*options_.kernel_times);
    const bool has_time = !options_.may_tune || options_.may_tune();
    InNetworkCost in_network(cost, network_key(*graph, options_, threads_), !is_given && has_time);
    plan = tune_in_network(graph, known, options, run_options_, in_network, options_);
  } else {
    options.cost = &cost;
    plan = compile_plan(std::move(graph), known, options);
  }
  const std::lock_guard lock(mutex_);
  kernel_times_ = cost.used();
  return plan;
}

void Executable::Impl::execute(RunContext& context, std::shared_ptr<MemoryMeter> meter) const {
  if (!meter && context.compiled().has_dynamic_steps) {
    meter = std::make_shared<MemoryMeter>(options_.memory_budget_bytes, context.compiled().memory.arena_bytes);
  }
  const ThreadScope threads(device_, threads_);
  // A nested run works on the processors of the run around it.
  std::optional<CoreGate::Pass> pass;
  if (!nested_) pass.emplace(CoreGate::of_process(), context.compiled().num_threads);
  const LimitScope limit(nested_ ? nullptr : run_options_.limit_threads);
  // Where others are at work the system finds free processors better.
  const bool is_alone = !run_options_.watch || run_options_.watch->limit() >= threads_;
  const PinScope pins(device_, options_.pin_threads && is_alone && !nested_, threads_);
  context.run(run_options_, meter);
  if (!options_.profile) return;
  const std::lock_guard lock(mutex_);
  profile_ = context.profile();
}

std::vector<Datum> Executable::Impl::run(const RunInputs& inputs, const std::shared_ptr<MemoryMeter>& meter) const {
  Lease lease(find_entry(inputs));
  RunContext& context = lease.context();
  for (size_t i = 0; i < inputs.size(); ++i) inputs.bind(context, i);
  const Plan& plan = context.compiled().plan;
  std::vector<Datum> outputs(plan.outputs.size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (!context.is_fixed_output(k)) continue;
    const SlotIndex slot = plan.outputs[k].slot;
    Tensor tensor = Tensor::empty(plan.slots[slot].type.dtype(), context.compiled().slot_dims[slot]);
    context.bind_output(k, tensor.mutable_raw());
    outputs[k] = Datum(std::move(tensor));
  }
  execute(context, meter);
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (!context.is_fixed_output(k)) outputs[k] = context.take_output(k);
  }
  return outputs;
}

void Executable::Impl::run_into(const RunInputs& inputs, std::vector<Tensor>& outputs) const {
  Lease lease(find_entry(inputs));
  RunContext& context = lease.context();
  const Plan& plan = context.compiled().plan;
  AG_CHECK_USER(outputs.size() == plan.outputs.size(), ValueError, "[run] outputs: expected {}, got {}",
                plan.outputs.size(), outputs.size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    const SlotIndex slot = plan.outputs[k].slot;
    AG_CHECK_USER(context.is_fixed_output(k), ShapeError, "[run] output {}: its size is known only after running; {}",
                  k, "use run()");
    const bool fits =
        outputs[k].dtype() == plan.slots[slot].type.dtype() && outputs[k].dims() == context.compiled().slot_dims[slot];
    AG_CHECK_USER(fits, ShapeError, "[run] output {}: expected {}, got {}", k, to_string(plan.slots[slot].type),
                  to_string(outputs[k].type()));
    context.bind_output(k, outputs[k].mutable_raw());
  }
  for (size_t i = 0; i < inputs.size(); ++i) inputs.bind(context, i);
  execute(context, nullptr);
}

KernelTimes Executable::Impl::kernel_times() const {
  const std::lock_guard lock(mutex_);
  return kernel_times_;
}

std::vector<StepProfile> Executable::Impl::profile() const {
  const std::lock_guard lock(mutex_);
  return profile_;
}

const Schedule& Executable::Impl::schedule() const {
  static const Schedule kSequential;
  return options_.schedule ? *options_.schedule : kSequential;
}

std::optional<double> Executable::Impl::simulated_latency_ms() const {
  if (!device_.machine) return std::nullopt;
  return simulate(*graph_, schedule(), *device_.machine).latency_us / 1e3;
}

std::shared_ptr<const CompiledPlan> Executable::Impl::current_plan() const {
  const std::lock_guard lock(mutex_);
  return entries_.empty() ? nullptr : entries_.front()->compiled();
}

// ---- Executable ------------------------------------------------------------------------------------------------

Executable::Executable() = default;
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;
Executable::~Executable() = default;
Executable::Executable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

std::vector<Datum> Executable::run(const std::vector<Datum>& inputs) const {
  return impl_->run(RunInputs(inputs), nullptr);
}

void Executable::run_into(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) const {
  impl_->run_into(RunInputs(inputs), outputs);
}

const Graph& Executable::graph() const { return impl_->graph(); }

MemoryReport Executable::memory() const {
  const auto plan = impl_->current_plan();
  return plan ? plan->memory : MemoryReport();
}

std::vector<KernelChoice> Executable::kernel_choices() const {
  const auto plan = impl_->current_plan();
  return plan ? plan->choices : std::vector<KernelChoice>();
}

KernelTimes Executable::kernel_times() const { return impl_->kernel_times(); }

std::vector<StepProfile> Executable::profile() const { return impl_->profile(); }

std::string Executable::print_plan() const {
  const auto plan = impl_->current_plan();
  return plan ? autograph::print_plan(plan->plan, *plan->graph) : "plan: none yet (it is made for the first inputs)\n";
}

std::optional<double> Executable::simulated_latency_ms() const { return impl_->simulated_latency_ms(); }

const Schedule& Executable::schedule() const { return impl_->schedule(); }

int Executable::threads() const { return impl_->threads(); }
int Executable::threads_now() const { return impl_->threads_now(); }

}  // namespace autograph
