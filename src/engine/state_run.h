// The states of a graph in one run.
#pragma once

#include <optional>
#include <vector>

#include "engine/state_store.h"
#include "runtime/launchable.h"

namespace autograph {

/// Holds the store and lets the plan read states and write new ones while it lives; does nothing where the graph has
/// no states. Where values are made while running, and may be other names for what they are made of, the run reads
/// copies, and finish() moves what is new into the store.
class StateRun {
 public:
  /// There is a store where there are states. `stored` are the store's, in the order of the graph's states.
  /// States that the run updates move to `memory`, that of its device, where they are not there yet, or to the host,
  /// where the plan has them wait there.
  StateRun(std::optional<StateStore>& store, const std::vector<StoredState*>& stored, const Memory* memory,
           Launchable& launchable);
  ~StateRun();
  StateRun(const StateRun&) = delete;
  StateRun& operator=(const StateRun&) = delete;
  /// To be called when the run is over, without an error. Throws ShapeError when a new value has another shape.
  void finish();

 private:
  const Tensor& in_memory(StoredState& state, StateStore& store, const Memory* memory, bool updates);
  static void make_ready_for_transfers(StoredState& state, const Memory& memory);
  void bind_updates();

  StoredState& state_of(const StateUpdate& update) { return *stored_[number_of(update.state)]; }
  size_t number_of(ValueId state) const;

  const std::vector<StoredState*>& stored_;
  Launchable& launchable_;
  const Graph& graph_;
  bool copies_;
  std::optional<StateLock> lock_;
  std::vector<Tensor> fresh_;           // by update
  std::vector<Tensor> read_elsewhere_;  // copies of states that lie in other memory, which the store keeps
};

}  // namespace autograph
