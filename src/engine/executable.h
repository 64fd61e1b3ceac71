// Executable::Impl: the compiled graph, its plans by input shapes, and a pool of run contexts for each plan.
#pragma once

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "autograph/compile.h"
#include "engine/backends.h"
#include "engine/run_inputs.h"
#include "optimize/pass.h"
#include "runtime/run_context.h"
#include "tune/attester.h"

namespace autograph {

/// A plan with the input shapes it is for. The pool has a mutex of its own, held only to take or return a context.
class PlanEntry {
 public:
  PlanEntry(std::shared_ptr<const CompiledPlan> compiled, const RunInputs* inputs);
  /// Was this plan made for inputs like these? Allocates nothing.
  bool matches(const RunInputs& inputs) const;
  const std::shared_ptr<const CompiledPlan>& compiled() const { return compiled_; }
  std::unique_ptr<RunContext> acquire();
  void give_back(std::unique_ptr<RunContext> context);

 private:
  struct Key {
    DType dtype = DType::undefined;  // undefined: not a tensor
    Dims dims;
  };
  std::shared_ptr<const CompiledPlan> compiled_;
  std::vector<Key> keys_;
  std::mutex mutex_;  // guards pool_
  std::vector<std::unique_ptr<RunContext>> pool_;
};

/// See above. run() and run_into() may be called by any number of threads at once.
class Executable::Impl {
 public:
  /// `graph` has been through the passes. Declared input types of a `nested` graph are not binding.
  Impl(Graph graph, const CompileOptions& options, bool nested);

  std::vector<Datum> run(const RunInputs& inputs, const std::shared_ptr<MemoryMeter>& meter) const;
  void run_into(const RunInputs& inputs, std::vector<Tensor>& outputs) const;

  const Graph& graph() const { return *graph_; }
  int threads() const { return threads_; }
  int threads_now() const { return run_options_.watch ? std::min(threads_, run_options_.watch->limit()) : threads_; }
  const Schedule& schedule() const;
  std::optional<double> simulated_latency_ms() const;
  std::vector<StepProfile> profile() const;
  KernelTimes kernel_times() const;
  /// The static plan, or the one used last; null when there is none yet.
  std::shared_ptr<const CompiledPlan> current_plan() const;

 private:
  class Lease;
  void compile_nested();
  std::shared_ptr<PlanEntry> find_entry(const RunInputs& inputs) const;
  std::shared_ptr<PlanEntry> make_entry(const RunInputs* inputs) const;
  std::shared_ptr<const CompiledPlan> make_plan(std::shared_ptr<const Graph> graph, const KnownValues& known,
                                                Graph* release_from = nullptr) const;
  void execute(RunContext& context, std::shared_ptr<MemoryMeter> meter) const;

  std::shared_ptr<const Graph> graph_;
  CompileOptions options_;
  const Device& device_;
  int threads_;
  bool nested_;
  mutable std::optional<Attester> judge_;  // of kernels; none on devices whose kernels are the reference
  RunOptions run_options_;
  std::map<const Graph*, std::unique_ptr<Impl>> nested_graphs_;  // fixed after construction

  mutable std::mutex mutex_;                               // guards entries_, profile_ and kernel_times_
  mutable std::list<std::shared_ptr<PlanEntry>> entries_;  // most recently used first
  mutable std::vector<StepProfile> profile_;
  mutable KernelTimes kernel_times_;
};

/// What passes may ask about the device.
PassContext pass_context(const Device& device);

/// Runs the passes, or one half of them: what compile() and nested compilation share, and what the search works
/// between.
Graph prepare_graph(Graph graph, const Device& device, const CompileOptions& compile_options,
                    PassHalf half = PassHalf::both);

}  // namespace autograph
