// A plan that a device has recorded: what it needs to run once at a time. Launchables are pooled, so that runs at the
// same time never share one and a warm run allocates nothing.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograph/run_report.h"
#include "graph/nested/nested_session.h"
#include "runtime/compiled_plan.h"
#include "runtime/memory/memory_meter.h"
#include "runtime/memory/shared_scratch.h"
#include "runtime/threads/core_watch.h"

namespace autograph {

/// Runs a nested graph inside the memory budget of the run around it.
using NestedRunner =
    std::function<std::vector<Datum>(const GraphRef&, const std::vector<Datum>&, const std::shared_ptr<MemoryMeter>&)>;

/// Makes a nested graph ready for inputs of certain types; see SessionOpener.
using NestedOpener = std::function<std::unique_ptr<NestedSession>(const GraphRef&, const std::vector<Datum>&)>;

/// What is the same for every launch of an executable.
struct RunOptions {
  const KernelCatalog& catalog;
  int threads = 1;
  bool check_nan = false;
  bool profile = false;
  NestedRunner run_nested = nullptr;
  NestedOpener open_nested = nullptr;
  const HostThreads& host_threads = HostThreads::none();  ///< See PlanOptions.
  KernelJudge* judge = nullptr;       ///< See PlanOptions; for kernels that are chosen while running.
  PackedConstants* packed = nullptr;  ///< Likewise.
  /// Asked before each step how many threads find a processor; null: all do.
  CoreWatch* watch = nullptr;
  bool exact = false;  ///< See KernelCall.
};

/// For one thread at a time. Inputs and outputs are bound before the first launch, and stay bound.
class Launchable {
 public:
  explicit Launchable(std::shared_ptr<const CompiledPlan> compiled);
  virtual ~Launchable() = default;
  Launchable(const Launchable&) = delete;
  Launchable& operator=(const Launchable&) = delete;

  /// Where the steps work from here on: at least the plan's arena_bytes in the memory of the device. What is given none
  /// makes its own.
  virtual void bind_arena(Tensor arena) = 0;
  /// The arena, for others to use until bind_arena() is called again.
  Tensor take_arena() { return std::exchange(arena_, Tensor()); }
  /// Where the arena is or was; null when there was none.
  const void* arena_address() const { return arena_address_; }

  /// Sets input `i`; its dtype and dims must be those of the plan. The tensor must live until the launch ends, and lie
  /// on the host or in the memory of the device: DeviceError where it does not.
  virtual void bind_input(size_t i, const Tensor& tensor) = 0;
  /// Sets input `i`, of any kind.
  virtual void bind_input(size_t i, const Datum& datum) = 0;
  /// Sets where on the host input `i` lies, in a plan without dynamic steps.
  virtual void bind_input(size_t i, const void* data) = 0;
  /// Where to write output `k`, which must have a static type: on the host or in the memory of the device.
  virtual void bind_output(size_t k, Tensor& tensor) = 0;
  /// The same by an address on the host. Null for an output that is not wanted and that no step writes: an input as it
  /// is.
  virtual void bind_output(size_t k, void* data) = 0;

  /// What input `i`, a state, holds; for plans whose kernels know elements of states.
  void set_state(size_t i, const Tensor& tensor, uint64_t version);
  /// Makes kernels anew that know elements of states which have been written since. Call on the threads of the run,
  /// before launch() and while nobody can write the states.
  void renew_kernels(const RunOptions& options);

  /// Runs all steps, and returns when outputs are written. `meter` may be null when the plan has no dynamic steps.
  virtual void launch(const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter) = 0;
  /// Launches, and tells how many microseconds the steps took by the clock of the device, where it has one: copies of
  /// what lies on the host do not count.
  virtual double time_us(const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter);

  /// Output `k` that is not fixed, after a launch.
  virtual Datum take_output(size_t k) = 0;
  /// Drops everything that refers to the caller's tensors or to values made while running.
  virtual void release() = 0;
  /// Did the last launch that was looked at write where an input lies, as updates of states and donations do, before it
  /// ended?
  bool has_overwritten_inputs() const;
  /// Steps of the last launch with RunOptions::profile.
  const std::vector<StepProfile>& profile() const { return profile_; }
  const CompiledPlan& compiled() const { return *compiled_; }
  /// Does output `k` have a fixed size, so that bind_output() applies?
  bool is_fixed_output(size_t k) const;

 protected:
  friend class DynamicStep;
  // A kernel of a dynamic step for the shapes seen last.
  struct CachedKernel {
    std::vector<Type> inputs;
    std::vector<Type> outputs;
    std::unique_ptr<Kernel> kernel;
    std::unique_ptr<KernelState> state;
    int64_t scratch_bytes = 0;
    Tensor scratch;  // absent: large_scratch_
  };

  // Where kernels find the elements of a slot; null for values made while running.
  virtual void* address_of(SlotIndex slot) const = 0;
  // The value of a slot: on the host where it is there, too.
  virtual Datum datum_of(SlotIndex slot) const = 0;

  // Where a step's views start in views_.
  struct StepViews {
    size_t inputs = 0;
    size_t outputs = 0;
  };

  size_t row_stride_of(const Step& step) const {
    const bool has_output = !step.outputs.empty() && step.outputs[0] != kNoSlot;
    return has_output ? compiled_->plan.slots[step.outputs[0]].row_stride : 0;
  }

  // What the kernel of a step gets; null: no stream.
  KernelArgs args_of(size_t number, Stream* stream = nullptr) const {
    const Step& step = compiled_->plan.steps[number];
    const StepViews& at = step_views_[number];
    return {{views_.data() + at.inputs, step.inputs.size()},
            {views_.data() + at.outputs, step.outputs.size()},
            arena_address_ + step.scratch_offset,
            kernels_[number].state.get(),
            stream,
            row_stride_of(step)};
  }

  std::shared_ptr<const CompiledPlan> compiled_;
  Tensor arena_;
  char* arena_address_ = nullptr;  // of arena_, or of the last one
  std::vector<TensorView> views_;
  std::vector<StepViews> step_views_;
  // Of a step; without a kernel where it looks for one while running.
  std::vector<StateKernels::Taken> kernels_;
  std::vector<StepProfile> profile_;
  size_t num_started_ = 0;   // steps of the last launch that was looked at
  std::vector<Datum> heap_;  // by slot; empty when there are no dynamic steps
  std::unordered_map<size_t, std::vector<std::shared_ptr<CachedKernel>>> dynamic_kernels_;  // by step
  SharedScratch large_scratch_;                                                             // of these
  // What the device may still be reading.
  std::vector<std::shared_ptr<const void>> retired_;

 private:
  void take_state_kernels();

  std::vector<StateContents> contents_;  // by input; empty where no kernel knows elements of states
  bool has_new_contents_ = false;        // since kernels were made anew
};

}  // namespace autograph
