// Reverse mode: from the outputs back through the graph, once over the nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "autograph/verify.h"

namespace autograph {

/// One backward pass over a graph, which it adds nodes to.
class Reverse {
 public:
  /// Gradients will be asked for with respect to `wanted`, which may repeat.
  Reverse(Graph& graph, const std::vector<ValueId>& wanted);

  /// Gives `value` a gradient of its shape and dtype.
  void seed(ValueId value, ValueId gradient);
  /// Walks back from what has been seeded; once.
  void run();
  /// The gradient of one of the wanted; invalid where none flows.
  ValueId gradient(ValueId wanted);

 private:
  friend class RuleContext;

  bool is_active(ValueId id) const { return id.is_valid() && id.index < active_.size() && active_[id.index]; }
  // Marks the outputs of a node that depend on what is wanted.
  void follow(NodeId id);
  void visit(NodeId id);
  void visit_body(NodeId id);
  bool has_gradient(NodeId id) const;
  // All that has flown into a value so far, as one value; invalid: nothing.
  ValueId total(ValueId value);
  // What the hooks of a value make of its whole gradient.
  ValueId hooked(ValueId value, ValueId gradient);
  // Makes readers of `from` read `to`, into which what flows into `from` then flows.
  void stand_in(ValueId from, ValueId to);
  const KnownValues& known_values();

  Graph& graph_;
  std::vector<NodeId> order_;                                         // all nodes, as the graph was
  std::vector<char> active_;                                          // by value: depends on what is wanted
  std::unordered_map<uint32_t, std::vector<ValueId>> contributions_;  // by value
  std::set<NodeId> used_hooks_;
  std::optional<KnownValues> known_;
};

}  // namespace autograph
