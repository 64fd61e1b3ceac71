// The body of a loop or scan turn by turn on memory that is laid out once: states go back and forth between two places,
// slices are read where they lie, and what is stacked is written where it belongs.
#pragma once

#include <cstdint>
#include <vector>

#include "autograph/shape.h"
#include "graph/nested/nested_session.h"

namespace autograph {

/// Which inputs and outputs of a body are for what.
struct TurnPlan {
  /// What a turn makes for the next one.
  struct State {
    size_t input, output;
  };
  /// One slice a turn of a tensor.
  struct Slice {
    size_t input;
    int64_t axis = 0;  ///< From the front.
    bool is_backwards = false;
  };
  /// What is stacked; backwards and along other axes than the first one only where the number of turns is known.
  struct Stack {
    size_t output;
    int64_t axis = 0;  ///< May count from the end.
    bool is_backwards = false;
  };

  bool has_condition = false;  ///< Input 0 is the turn, input 1 the condition, and output 0 the next condition.
  std::vector<State> states;
  std::vector<Slice> slices;
  std::vector<Stack> stacks;
};

/// What the inputs of a body are when those of its node are `inputs`, in whose places for slices whole tensors stand.
/// All are tensors of known extents.
std::vector<Type> types_in_turn(const TurnPlan& plan, std::vector<Type> inputs);

/// Where a loop finds what it reads and writes.
class TurnMemory {
 public:
  virtual ~TurnMemory() = default;
  /// What input `i` of the body is in the first turn; the whole tensor for a slice. Not asked about the turn.
  virtual const void* input(size_t i) = 0;
  /// Where the last value of state `k` is to be.
  virtual void* state(size_t k) = 0;
  /// Where stack `k` begins, with room for what turn `turn` adds.
  virtual void* stack(size_t k, int64_t turn) = 0;
  /// TurnLoop::scratch_bytes() bytes.
  virtual void* scratch() = 0;
};

class TurnLoop {
 public:
  /// `inputs` are the types of the node's inputs for the body, as types_in_turn() takes them.
  TurnLoop(TurnPlan plan, const std::vector<Type>& inputs, const NestedSession& session);

  const TurnPlan& plan() const { return plan_; }
  /// Do the types of the states stay as they are? If not, there is nothing to run.
  bool keeps_types() const { return keeps_types_; }
  size_t scratch_bytes() const { return scratch_bytes_; }
  /// Runs at most `num_turns` turns, which are the extents of slices, and says how many they were. Allocates nothing.
  int64_t run(NestedSession& session, int64_t num_turns, TurnMemory& memory) const;

 private:
  // Slices of a tensor along an axis: each is some blocks, which lie apart.
  struct Cut {
    int64_t blocks = 1;
    size_t block_bytes = 0;
    size_t bytes() const { return static_cast<size_t>(blocks) * block_bytes; }
    bool is_whole() const { return blocks <= 1; }
  };
  struct State {
    size_t input, output;
    size_t bytes;
    bool is_handed_on;
    size_t scratch;  // where its second place is; of the condition, both
  };
  struct Part {
    size_t number;  // of the body's input or output
    Cut cut;
    bool is_backwards;
    size_t scratch;  // where a copy is, unless the slice is whole
  };
  class Run;

  static Cut cut_of(const Type& slice, int64_t axis);
  size_t take_scratch(size_t bytes);
  void add_stack(const TurnPlan::Stack& stack, const Type& slice);
  void add_state(const TurnPlan::State& state, const std::vector<Type>& types, const NestedSession& session);

  TurnPlan plan_;
  size_t num_inputs_;
  std::vector<State> states_;  // the condition first, where there is one
  std::vector<Part> slices_, stacks_;
  bool keeps_types_ = true;
  size_t scratch_bytes_ = 0;
};

}  // namespace autograph
