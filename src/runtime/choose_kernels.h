// Kernels and layouts for the steps of a plan, chosen together: a kernel that is fast in a layout of its own is worth
// taking only when the reorders around it cost less than it gains.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "autograph/kernel.h"
#include "base/parallel_for.h"
#include "device/host_threads.h"
#include "device/kernel_judge.h"
#include "runtime/kernel_cost.h"
#include "runtime/state_kernels.h"
#include "schedule/plan.h"

namespace autograph {

/// What was chosen for a step.
struct StepChoice {
  std::vector<KernelCandidate> candidates;  ///< The chosen one first, then others with the same layouts; empty: none.
  std::vector<std::string> refusals;        ///< "candidate: reason".
  double us = 0;                            ///< What the chosen one costs.
  double least_us = 0;                      ///< What the cheapest one costs, whatever reorders it wants.
};

/// The static parts of a step's call.
struct StepCall {
  std::vector<Type> inputs;
  std::vector<Type> outputs;
  std::vector<Tensor> constants;

  /// `states` whose elements are known, by input of the plan.
  StepCall(const Plan& plan, const Step& step, std::span<const StateContents> states = {});
};

/// Among what to choose, and how.
struct ChooseOptions {
  const KernelCatalog& catalog;
  KernelCost& cost;
  int threads = 1;
  bool exact = false;                                     ///< See KernelCall::exact.
  const HostThreads& host_threads = HostThreads::none();  ///< Of the device.
  KernelJudge* judge = nullptr;                           ///< See PlanOptions.
  RunTeam team = nullptr;                                 ///< Likewise.
  std::span<const StateContents> states = {};             ///< See StepCall.

  /// Threads of a step's kernel.
  int threads_of(const Step& step) const { return step.threads > 0 ? step.threads : threads; }
};

/// Chooses for every fixed step. The result and `layouts` are parallel to the steps.
std::vector<StepChoice> choose_kernels(const Plan& plan, const Graph& graph, const ChooseOptions& options,
                                       std::vector<StepLayouts>& layouts);

}  // namespace autograph
