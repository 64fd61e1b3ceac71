// Executable::Impl: the compiled graph, its plans by input shapes, and a pool of launchables for each plan.
#pragma once

#include <algorithm>
#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <vector>

#include "autograph/compile.h"
#include "autograph/devices.h"
#include "cost/attester.h"
#include "engine/prepare_graph.h"
#include "engine/run_inputs.h"
#include "engine/state_store.h"
#include "runtime/launchable.h"
#include "runtime/memory/arena_pool.h"
#include "runtime/memory/packed_constants.h"
#include "tensor/buffer_pool.h"

namespace autograph {

/// A plan with the input shapes it is for. The pool has a mutex of its own, held only to take or return a launchable.
class PlanEntry {
 public:
  /// `inputs` are the types that the plan is for, of Kind::none for what is no tensor; `nested` its nested graphs;
  /// `arenas` is where runs get their memory.
  PlanEntry(std::shared_ptr<const CompiledPlan> compiled, const std::vector<Type>& inputs,
            std::vector<std::shared_ptr<Executable::Impl>> nested, std::shared_ptr<ArenaPool> arenas,
            CompileReport report);
  /// Was this plan made for inputs like these? Allocates nothing.
  bool matches(const RunInputs& inputs) const;
  /// The type of input `i` that this plan is for; of Kind::none when it is no tensor.
  Type input_type(size_t i) const;
  void count_run() { ++num_runs_; }
  int num_runs() const { return num_runs_; }
  const std::shared_ptr<const CompiledPlan>& compiled() const { return compiled_; }
  const CompileReport& report() const { return report_; }
  /// A launchable with an arena.
  std::shared_ptr<Launchable> acquire(const Device& device);
  void give_back(std::shared_ptr<Launchable> launchable);

 private:
  struct Key {
    DType dtype = DType::undefined;  // undefined: not a tensor
    Dims dims;                       // kOpen: any extent
  };
  static constexpr int64_t kOpen = -1;
  std::shared_ptr<const CompiledPlan> compiled_;
  std::atomic<int> num_runs_ = 0;
  std::vector<std::shared_ptr<Executable::Impl>> nested_;
  std::vector<Key> keys_;
  std::shared_ptr<ArenaPool> arenas_;
  CompileReport report_;
  std::mutex mutex_;  // guards pool_
  std::vector<std::shared_ptr<Launchable>> pool_;
};

/// What the plans of one executable share, those of its nested graphs included.
struct SharedByPlans {
  std::shared_ptr<PackedConstants> packed = std::make_shared<PackedConstants>();
  std::shared_ptr<ArenaPool> arenas = std::make_shared<ArenaPool>();
};

/// How often a graph runs in one run of the graph around it, if there is one.
enum class Nesting : uint8_t { none, once, repeatedly };

class NodeByNode;

/// Run() and run_into() may be called by any number of threads at once.
class Executable::Impl {
 public:
  /// Declared input types of a nested graph are not binding.
  Impl(Graph graph, const CompileOptions& options, Nesting nesting, SharedByPlans shared = {});
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::vector<Datum> run(const RunInputs& inputs, const std::shared_ptr<MemoryMeter>& meter) const;
  void run_into(const RunInputs& inputs, std::vector<Tensor>& outputs) const;

  const Graph& graph() const { return *graph_; }
  const StateStore& states() const { return *states_; }
  const Device& device() const { return device_; }
  /// The plan for inputs of these types, of which those that are no tensors are Kind::none.
  std::shared_ptr<PlanEntry> entry_for(const std::vector<Type>& types) const;
  /// The same whose kernels know elements of inputs, by input (see PlanOptions::states); the caller's alone.
  std::shared_ptr<PlanEntry> entry_knowing(const std::vector<Type>& types, std::vector<StateContents> contents) const;
  /// Tells kernels of such a plan what these inputs hold now: see Launchable::renew_kernels().
  void renew_kernels(const CompiledPlan& compiled, const std::vector<StateContents>& contents) const;
  /// One run on what is bound; `meter` may be null.
  void execute(Launchable& launchable, std::shared_ptr<MemoryMeter> meter) const;
  int threads() const { return threads_; }
  int threads_now() const { return run_options_.watch ? std::min(threads_, run_options_.watch->limit()) : threads_; }
  const Schedule& schedule() const;
  std::optional<double> simulated_latency_ms() const;
  std::vector<StepProfile> profile() const;
  KernelTimes kernel_times() const;
  CompileReport report() const;
  /// The static plan, or the one used last; null when there is none yet.
  std::shared_ptr<const CompiledPlan> current_plan() const;

 private:
  class Lease;
  std::vector<Datum> run_on(Launchable& launchable, const RunInputs& inputs,
                            const std::shared_ptr<MemoryMeter>& meter) const;
  std::vector<Buffer> output_buffers(const Launchable& launchable) const;
  void run_into_on(Launchable& launchable, const RunInputs& inputs, std::vector<Tensor>& outputs) const;
  const Impl& chosen_for(const RunInputs& inputs) const;
  [[noreturn]] void explain_nonfinite(const Launchable& launchable, const RunInputs& inputs) const;
  std::vector<std::shared_ptr<Impl>> compile_nested(const Graph& graph) const;
  std::shared_ptr<Impl> find_nested(const Graph& graph) const;
  std::shared_ptr<Impl> nested_of(const GraphRef& graph) const;
  std::unique_ptr<NestedSession> open_session(const std::vector<Datum>& inputs) const;
  std::shared_ptr<PlanEntry> find_entry(const RunInputs& inputs) const;
  std::shared_ptr<PlanEntry> make_entry(const std::vector<Type>& types, std::vector<StateContents> contents) const;
  std::vector<Type> plan_types(const RunInputs& inputs) const;
  bool is_nested() const { return nesting_ != Nesting::none; }
  bool has_plans() const;
  std::shared_ptr<PlanEntry> build(Graph graph, const std::vector<Type>& types,
                                   std::vector<StateContents> contents = {}) const;
  std::shared_ptr<const CompiledPlan> make_plan(const std::shared_ptr<const Graph>& graph, const KnownValues& known,
                                                Graph* release_from, std::vector<StateContents> contents) const;
  void open_states(const Graph& graph);

  std::shared_ptr<const Graph> graph_;
  CompileReport open_report_;                // of the passes that ran while extents were not known
  std::unordered_set<const void*> flushed_;  // of the constants of graph_ where extents are open; see PassContext
  CompileOptions options_;
  const Device& device_;
  const Memory* output_memory_;                       // where run() has outputs written
  mutable std::optional<BufferPool> output_buffers_;  // where they stay in the memory of the device
  int threads_;
  Nesting nesting_;
  mutable std::optional<Attester> judge_;  // of kernels; none on devices whose kernels are the reference
  SharedByPlans shared_;
  RunOptions run_options_;
  mutable std::optional<StateStore> states_;  // none in nested graphs
  std::unique_ptr<NodeByNode> by_node_;       // with NanCheck::steps, not in nested graphs
  std::vector<StoredState*> stored_states_;   // of the store, in the order of the graph's states
  mutable std::mutex nested_mutex_;           // guards nested_graphs_
  mutable std::map<const Graph*, std::weak_ptr<Impl>> nested_graphs_;  // kept alive by the plans that run them

  mutable std::once_flag is_simulated_;
  mutable std::optional<double> simulated_us_;  // once it has been asked for

  mutable std::mutex mutex_;                               // guards entries_, profile_ and kernel_times_
  mutable std::list<std::shared_ptr<PlanEntry>> entries_;  // most recently used first
  mutable std::vector<StepProfile> profile_;
  mutable KernelTimes kernel_times_;
};

}  // namespace autograph
