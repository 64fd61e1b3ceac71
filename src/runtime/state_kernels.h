// Kernels that know the elements of states: weights of a model that is evaluated while another graph trains it. Until
// somebody writes them, such states are as constant as constants, and kernels keep packed copies of them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "autograph/graph.h"
#include "runtime/computed_states.h"
#include "runtime/packing_kernel.h"
#include "schedule/plan.h"

namespace autograph {

struct CompiledPlan;
struct RunOptions;

/// By input of a plan for `graph`: the states whose elements kernels may know, absent tensors for all other inputs.
/// These are floats that the graph itself does not update, so that they last longer than a run. Single numbers are not
/// among them: kernels choose what they do by them, and there is nothing to pack.
std::vector<StateContents> known_states(const Graph& graph);

/// The contents of a slot that is one of `states`, by input of the plan, as a whole; null where it is none.
const StateContents* known_state(const Plan& plan, SlotIndex slot, std::span<const StateContents> states);

/// The kernels of one plan that were made for elements of states, each in the version that was asked for last: what is
/// packed of older ones is freed. All runs that ask at the same time must see the same contents; they hold the
/// StateStore. Any number of threads may do so.
class StateKernels {
 public:
  /// For a plan of `graph`.
  StateKernels(std::shared_ptr<const Graph> graph, std::vector<StateContents> states)
      : graph_(std::move(graph)), states_(std::move(states)), computed_(*graph_, states_) {}

  /// The states as the graph has them.
  const std::vector<StateContents>& states() const { return states_; }
  /// What the kernel of a node with nested graphs may know of a value: an input or state, or one that is computed of
  /// states; absent for all others.
  Tensor known_elements(ValueId value) const;
  /// Does the kernel of this step know elements of a state?
  bool knows_states(const Plan& plan, const Step& step) const;
  /// Takes the kernel of step `number`, made for states().
  void add(const Plan& plan, size_t number, std::unique_ptr<Kernel> kernel);

  /// A kernel that one launchable has taken.
  struct Taken {
    const Kernel* kernel = nullptr;
    std::unique_ptr<KernelState> state;
    uint64_t made = 0;  ///< How often the kernel of the step was made or has packed; 0: it is none.
  };
  size_t size() const { return entries_.size(); }
  /// The step of entry `k`.
  size_t number(size_t k) const { return entries_[k].number; }
  /// The kernel of entry `k` as it is now, where it is not the one that was `taken`.
  void take(size_t k, Taken& taken);
  /// Has the kernels pack anew that are not for these contents, by input of the plan, and makes those anew that cannot.
  /// Throws UnsupportedError where one refuses other elements than it was chosen for.
  void renew(const CompiledPlan& compiled, const std::vector<StateContents>& states, const RunOptions& options);

 private:
  struct Entry {
    size_t number = 0;
    std::vector<uint64_t> versions;  // parallel to the inputs of the step; 0 where it knows no state
    std::unique_ptr<Kernel> kernel;  // null where making it failed
    uint64_t made = 1;
  };
  const StateContents* known_input(const Plan& plan, const Step& step, size_t slot,
                                   std::span<const StateContents> states) const;
  void renew(Entry& entry, const CompiledPlan& compiled, const std::vector<StateContents>& states,
             const RunOptions& options) const;
  static void pack(Entry& entry, const CompiledPlan& compiled, const std::vector<StateContents>& states,
                   std::span<const StateContents> written, const RunOptions& options);

  const std::shared_ptr<const Graph> graph_;
  const std::vector<StateContents> states_;
  std::mutex mutex_;  // guards what follows from the first run on
  ComputedStates computed_;
  std::vector<Entry> entries_;
};

}  // namespace autograph
