// Values that a graph computes of states alone and hands to loops and branches: a transposed weight in front of a loop.
// Until somebody writes these states, they are as constant as the states themselves.
#pragma once

#include <cstddef>
#include <vector>

#include "autograph/graph.h"
#include "runtime/packing_kernel.h"

namespace autograph {

/// What some states hold, by input of the graph; absent tensors for all other inputs.
using ContentsOfInputs = std::vector<StateContents>;

/// What they are of: the inputs of a graph, then its states.
std::vector<ValueId> inputs_and_states(const Graph& graph);

class ComputedStates {
 public:
  /// Computes the values that nested graphs of `graph` read, floats of more than one element.
  ComputedStates(const Graph& graph, const ContentsOfInputs& states);
  /// Computes those anew whose states have other versions now.
  void renew(const Graph& graph, const ContentsOfInputs& states);
  /// What a value is for the states that were told last; null where it is none of these.
  const StateContents* find(ValueId value) const;

 private:
  struct Computed {
    ValueId value;
    std::vector<size_t> states;  // inputs of the graph that it is made of
    StateContents contents;      // its version is the sum of theirs: they only grow
  };
  std::vector<Computed> values_;
};

}  // namespace autograph
