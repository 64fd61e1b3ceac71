// LoopControl: the turns of a loop counted ahead of time.
//
// What exporters make of `for t in range(n)` is a loop that carries t, adds 1 and compares. Values of the body that
// follow from the turn, from such states and from known numbers alone are its control; when the condition is one of
// them, running the control tells how many turns there will be and which values the control has in each.
#pragma once

#include <unordered_map>
#include <vector>

#include "autograph/verify.h"
#include "optimize/loop_parts.h"

namespace autograph {

class LoopControl {
 public:
  /// `known` are the values that are known in the graph around the loop.
  LoopControl(const Graph& graph, const KnownValues& known, const LoopParts& parts);

  /// Counts the turns; false when that cannot be done, or would take long.
  bool run();
  int64_t num_turns() const { return num_turns_; }

  /// Does the inner value follow from the turn and known numbers alone, changing from turn to turn?
  bool has(ValueId inner) const;
  /// The values of all turns, one below the other.
  Tensor table(ValueId inner) const;
  /// What is left of a state that has().
  Tensor last(const LoopParts::State& state) const;

 private:
  const Tensor* known_outer(ValueId outer) const;
  bool is_small(ValueId inner) const;
  bool is_followed(ValueId inner) const;
  void assume();
  bool drop_wrong_states();
  bool run_turn(int64_t turn);

  const Graph& graph_;
  const KnownValues& known_;
  const LoopParts& parts_;
  std::vector<uint8_t> follows_;                              // by inner value
  std::vector<uint8_t> assumed_;                              // by state
  std::vector<NodeId> nodes_;                                 // in order
  std::unordered_map<uint32_t, Tensor> values_;               // by inner value, of the current turn
  std::unordered_map<uint32_t, std::vector<Tensor>> tables_;  // by inner value
  std::vector<Tensor> last_;                                  // by state
  int64_t num_turns_ = 0;
};

}  // namespace autograph
