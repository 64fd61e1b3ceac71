// A plan with its kernels: immutable once made, shared by all runs with the same input shapes.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "autograph/donation.h"
#include "autograph/kernel.h"
#include "autograph/run_report.h"
#include "base/parallel_for.h"
#include "device/host_threads.h"
#include "device/kernel_judge.h"
#include "runtime/kernel_cost.h"
#include "runtime/state_kernels.h"
#include "schedule/plan.h"

namespace autograph {

struct CompiledPlan {
  std::shared_ptr<const Graph> graph;  ///< With types for these input shapes; kernels refer to its attributes.
  Plan plan;
  std::vector<Buffer> weights;                   ///< Parallel to Plan::weights where the device has memory of its own.
  std::vector<std::unique_ptr<Kernel>> kernels;  ///< Parallel to the steps; null for dynamic and evaluate steps.
  std::vector<Dims> slot_dims;                   ///< Dims of slots with static types: views refer to them.
  std::vector<std::string> provenance;           ///< Of each step, for profiles and messages.
  std::vector<KernelChoice> choices;
  std::vector<KernelCandidate>
      candidates;  ///< Those taken, parallel to the steps; without a kernel for reorders and dynamic steps.
  MemoryReport memory;
  bool has_dynamic_steps = false;
  int num_threads = 1;  ///< That a run has at work at once, at most.
  /// Of the steps that read states whose elements kernels know, in place of `kernels`, where they are null; null: no
  /// step does.
  std::shared_ptr<StateKernels> state_kernels;
  /// Inputs of the plan, states, that lie in the memory of the host though the device has its own: steps copy them.
  std::vector<uint32_t> states_on_host;
};

/// What lies in the arena when most of it is in use, in the user's words, largest first.
std::vector<PeakTensor> tensors_at_peak(const CompiledPlan& compiled);

/// Makes the kernel of a node with nested graphs whose extents are all known; null where they have to be run without.
using PrepareNested = std::function<std::unique_ptr<Kernel>(const KernelCall&)>;

/// What compile_plan needs besides the graph.
struct PlanOptions {
  const KernelCatalog& catalog;
  int threads = 1;
  size_t memory_budget_bytes = 0;                         ///< 0 = only what the machine has.
  bool exact = false;                                     ///< See KernelCall::exact.
  const HostThreads& host_threads = HostThreads::none();  ///< Of the device.
  Graph* release_from =
      nullptr;                 ///< The graph itself, when constants that kernels have packed may lose their elements.
  KernelCost* cost = nullptr;  ///< By which kernels are chosen; null = the kernels' own estimates.
  const Memory* memory = nullptr;            ///< Of the device; null: the host's.
  std::span<const Donation> donations = {};  ///< See CompileOptions.
  const Schedule* schedule = nullptr;        ///< See plan_scheduled(); null: one step after the other.
  /// Asked about every kernel before it is taken; where it refuses one, kernels are chosen anew. Null: all are trusted.
  KernelJudge* judge = nullptr;
  /// Threads on which kernels are chosen and made, where there are some at hand; null: new ones.
  RunTeam team = nullptr;
  PackedConstants* packed = nullptr;  ///< See KernelCall. Not with `release_from`, since it keeps constants.
  PrepareNested nested = nullptr;     ///< Null: nested graphs are planned when they run.
  bool keeps_inputs = false;          ///< No step writes where it reads, so that inputs can be looked at behind it.
  /// What kernels may know of inputs that last longer than a run, by input: known_states(), or what a body is given of
  /// them. Those who run the plan tell what they hold then: Launchable::set_state(). On the host alone; empty: nothing.
  std::vector<StateContents> states = {};

  /// Threads of a step's kernel.
  int threads_of(const Step& step) const { return step.threads > 0 ? step.threads : threads; }
};

/// Makes the plan of a graph whose types and known values have just been inferred. Throws UnsupportedError listing
/// every node without a kernel and BudgetError listing the largest tensors.
std::shared_ptr<const CompiledPlan> compile_plan(const std::shared_ptr<const Graph>& graph, const KnownValues& known,
                                                 const PlanOptions& options);

/// Call inside a catch block, where memory for a plan was not to be had: throws the exception again, with the largest
/// tensors of the plan behind its message.
[[noreturn]] void rethrow_with_largest(const CompiledPlan& compiled);

/// The op of a step, "reorder" for a change of layout, "copy" for a transfer.
std::string_view op_name(const CompiledPlan& compiled, const Step& step);

/// "conv "layer1.conv1": f32[1,3,8,8], f32[4,3,3,3]": a step in the words of messages.
std::string describe_step(const CompiledPlan& compiled, const Step& step);

}  // namespace autograph
