// What one run at a time needs of a compiled plan: the arena, views into it for every step, kernel states. Contexts are
// pooled, so that concurrent runs never share one and a warm run allocates nothing.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograph/run_report.h"
#include "base/function_ref.h"
#include "graph/nested_session.h"
#include "runtime/compiled_plan.h"
#include "runtime/core_watch.h"
#include "runtime/memory_meter.h"
#include "runtime/stream_sync.h"

namespace autograph {

/// Runs a nested graph inside the memory budget of the run around it.
using NestedRunner =
    std::function<std::vector<Datum>(const GraphRef&, const std::vector<Datum>&, const std::shared_ptr<MemoryMeter>&)>;

/// Makes a nested graph ready for inputs of certain types; see SessionOpener.
using NestedOpener = std::function<std::unique_ptr<NestedSession>(const GraphRef&, const std::vector<Datum>&)>;

/// Calls work(0) ... work(streams - 1) at the same time, each on a thread that uses `threads` threads inside kernels,
/// and returns when all are done. `work` must not throw. False, with nothing called, where so many threads cannot be
/// had.
using RunStreams = bool (*)(int streams, int threads, FunctionRef<void(int)> work);

/// What is the same for every run of an executable.
struct RunOptions {
  const KernelCatalog& catalog;
  int threads = 1;
  bool check_nan = false;
  bool profile = false;
  NestedRunner run_nested = nullptr;
  NestedOpener open_nested = nullptr;
  int (*set_threads)(int) = nullptr;  ///< See PlanOptions.
  RunStreams run_streams = nullptr;   ///< Null: streams run one after the other.
  KernelJudge* judge = nullptr;       ///< See PlanOptions; for kernels that are chosen while running.
  PackedConstants* packed = nullptr;  ///< Likewise.
  /// Asked before each step how many threads find a processor; null: all do.
  CoreWatch* watch = nullptr;
  /// Makes kernels that the calling thread runs use so many threads at most. Not null where `watch` is not.
  void (*limit_threads)(int) = nullptr;
};

/// See above. For one thread at a time.
class RunContext {
 public:
  explicit RunContext(std::shared_ptr<const CompiledPlan> compiled);

  /// Where the steps work from here on: at least the plan's arena_bytes. A context that is given none makes its own.
  void bind_arena(Tensor arena);
  /// The arena, for others to use until bind_arena() is called again.
  Tensor take_arena() { return std::exchange(arena_, Tensor()); }
  /// Where the arena is or was; null when there was none.
  const void* arena_address() const { return arena_address_; }

  /// Sets input `i`; its dtype and dims must be those of the plan. The tensor must live until the run ends.
  void bind_input(size_t i, const Tensor& tensor);
  /// Sets input `i`, of any kind.
  void bind_input(size_t i, const Datum& datum);
  /// Sets where input `i` lies, in a plan without dynamic steps.
  void bind_input(size_t i, const void* data);
  /// Where to write output `k`, which must have a static type. Null for an output that is not wanted and that no step
  /// writes: an input as it is.
  void bind_output(size_t k, void* data);

  /// Runs all steps. `meter` may be null when the plan has no dynamic steps.
  void run(const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter);

  /// Does output `k` have a fixed size, so that bind_output() applies?
  bool is_fixed_output(size_t k) const;
  /// Output `k` that is not fixed, after a run.
  Datum take_output(size_t k);
  /// Drops everything that refers to the caller's tensors or to values made while running.
  void release();
  /// Steps of the last run with RunOptions::profile.
  std::vector<StepProfile>& profile() { return profile_; }
  const CompiledPlan& compiled() const { return *compiled_; }

 private:
  friend class DynamicStep;
  using Clock = std::chrono::steady_clock;
  // Where a step's views start in views_.
  struct StepViews {
    size_t inputs = 0;
    size_t outputs = 0;
  };
  // A kernel of a dynamic step for the shapes seen last.
  struct CachedKernel {
    std::vector<Type> inputs;
    std::vector<Type> outputs;
    std::unique_ptr<Kernel> kernel;
    std::unique_ptr<KernelState> state;
    Tensor scratch;
  };

  void build_views();
  struct PlacedView {
    uint32_t view = 0;  // in views_
    size_t offset = 0;  // in the arena or the caller's tensor
  };
  void patch(const std::vector<PlacedView>& views, void* data);
  void run_range(size_t begin, size_t end, const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter);
  void run_in_turn(size_t begin, size_t end, const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter);
  void run_stage(const PlanStage& stage, const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter);
  void run_stream(const std::vector<uint32_t>& steps, bool may_spin, const RunOptions& options,
                  const std::shared_ptr<MemoryMeter>& meter) noexcept;
  [[noreturn]] void rethrow_from(size_t number);
  void run_step(size_t number, const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter);
  void run_fixed(size_t number);
  void run_observed(size_t number, const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter);
  int64_t find_nonfinite_in(SlotIndex s) const;
  bool has_finite_inputs(size_t number) const;
  /// Throws when an output holds a NaN or infinity.
  void check_outputs_finite(size_t number) const;
  void copy_outputs();
  void* address_of(SlotIndex slot) const;
  Datum datum_of(SlotIndex slot) const;

  std::shared_ptr<const CompiledPlan> compiled_;
  Tensor arena_;
  char* arena_address_ = nullptr;
  std::vector<TensorView> views_;
  std::vector<StepViews> step_views_;
  std::vector<PlacedView> arena_views_;
  std::vector<std::vector<PlacedView>> input_views_;   // views that follow input i
  std::vector<std::vector<PlacedView>> output_views_;  // views that follow output k
  std::vector<void*> input_data_;
  std::vector<void*> output_data_;
  std::vector<Tensor> staged_;               // by output; empty where it is not staged
  std::vector<Datum> input_data_as_datums_;  // only with dynamic steps or non-tensor inputs
  std::vector<Datum> heap_;                  // by slot; empty when there are no heap slots
  std::vector<std::unique_ptr<KernelState>> states_;
  std::unordered_map<size_t, std::vector<CachedKernel>> dynamic_kernels_;  // by step
  std::unique_ptr<StreamSync> sync_;                                       // null when the plan has no streams
  std::vector<StepProfile> profile_;
  Clock::time_point run_start_;
};

}  // namespace autograph
