// LoopParts: a loop or scan taken apart, so that passes can change what goes in, out and round, and put together again.
//
// The body is a copy whose inputs have the types that they have outside. Parts may be moved between the lists, dropped
// when nothing reads them, and added (Graph::add_input on the body); the order of the body's own inputs and outputs
// does not matter.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// Values named `inner` are those of the body, `outer` and `result` those of the graph around it.
struct LoopParts {
  struct State {
    ValueId outer;   ///< Initially.
    ValueId inner;   ///< What the body reads.
    ValueId next;    ///< Inner: what the body makes of it.
    ValueId result;  ///< The last one.
  };
  struct ScanInput {
    ValueId outer;  ///< All slices.
    ValueId inner;  ///< One of them.
    int64_t axis = 0;
    bool is_backwards = false;
  };
  struct ScanOutput {
    ValueId inner;   ///< Of one turn.
    ValueId result;  ///< Stacked.
    int64_t axis = 0;
    bool is_backwards = false;
  };
  struct Capture {
    ValueId outer, inner;
  };

  bool is_scan = false;
  Graph body;
  ValueId limit, first_condition;           ///< Outer, of a loop; each may be missing.
  ValueId turn, condition, next_condition;  ///< Inner, of a loop.
  std::vector<State> states;
  std::vector<ScanInput> scan_inputs;
  std::vector<ScanOutput> scan_outputs;
  std::vector<Capture> captures;

  /// Makes all readers of an inner value read `to`.
  void replace_inner(ValueId from, ValueId to);
  /// Makes the body one with exactly these inputs and outputs, in the order of the op, and without dead nodes.
  void rebuild();
  /// Is the inner value a state's next one, a scan output or the next condition?
  bool leaves_body(ValueId inner) const;
};

/// Takes the node apart, if it is a loop or scan of today's form whose body's types can be told. `tidy` is handed the
/// body once its types are known, and may rewrite it.
std::optional<LoopParts> read_loop(const Graph& graph, NodeId node, const std::function<void(Graph&)>& tidy);

/// Puts a new node in the place of `old`, which `parts` came from. Results that `parts` does not have any more must not
/// be read any more. Returns the new node.
NodeId write_loop(Graph& graph, NodeId old, LoopParts parts);

}  // namespace autograph
