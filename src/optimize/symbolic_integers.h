// SymbolicIntegers: what is known of small integer tensors while extents are symbolic: [batch, 12, -1] for a shape that
// a model puts together from the shape of a tensor.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// A number, a symbolic extent, or something unknown.
struct SymbolicInteger {
  std::optional<int64_t> number;
  Dim symbol;  ///< Looked at while there is no number; may be unknown.

  SymbolicInteger(int64_t value) : number(value) {}  // NOLINT: numbers convert on purpose
  /// An extent, known or not.
  SymbolicInteger(const Dim& dim);  // NOLINT: likewise
  bool is_unknown() const { return !number && symbol.is_unknown(); }
};

/// The extents as numbers with which reshape takes `x`, of known rank, to them; nothing when that cannot be said.
std::optional<std::vector<int64_t>> reshape_target(const std::vector<SymbolicInteger>& extents, const Shape& x);

/// The elements of the integer tensors of a graph, as far as shape arithmetic tells them.
class SymbolicIntegers {
 public:
  explicit SymbolicIntegers(const Graph& graph) : graph_(graph) {}

  /// Looks at a node whose inputs were looked at before.
  void visit(NodeId node);

  /// The elements of `v`, or null when nothing is known.
  const std::vector<SymbolicInteger>* find(ValueId v);

 private:
  using Elements = std::vector<SymbolicInteger>;
  std::optional<Elements> evaluate(const Node& node);
  std::optional<Elements> evaluate_shape(const Node& node) const;
  std::optional<Elements> evaluate_gather(const Node& node);
  std::optional<Elements> evaluate_slice(const Node& node);
  std::optional<Elements> evaluate_concat(const Node& node);
  std::optional<Elements> evaluate_arithmetic(const Node& node);

  const Graph& graph_;
  std::unordered_map<uint32_t, Elements> known_;  // by value
};

}  // namespace autograph
