// Running the body of a loop or scan turn by turn on memory that is laid out once: states go back and forth between two
// buffers, slices are read where they lie, and what is stacked is written where it belongs.
#pragma once

#include <optional>
#include <vector>

#include "autograph/op_def.h"

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
    Tensor whole;
    int64_t axis = 0;  ///< From the front.
    bool is_backwards = false;
  };
  /// What is stacked.
  struct Stack {
    size_t output;
    int64_t axis = 0;  ///< May count from the end.
    bool is_backwards = false;
  };

  int64_t num_turns = 0;       ///< At most.
  bool has_condition = false;  ///< Input 0 is the turn, input 1 the condition, and output 0 the next condition.
  std::vector<State> states;
  std::vector<Slice> slices;
  std::vector<Stack> stacks;
};

/// Runs the nested graph `body`: as many turns as the plan says, at least one. `inputs` are those of the body in the
/// first turn. Gives the last states, then the stacks; nothing (and nothing has run) where shapes change from turn to
/// turn or are not known before.
std::optional<std::vector<Datum>> run_turns(EvaluateContext& context, const TurnPlan& plan, std::vector<Datum> inputs);

}  // namespace autograph
