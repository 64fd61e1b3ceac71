// Var: a handle on a value of a graph, so that models read like formulas: `relu(conv(x, w, b))`.
//
// The typed builder of each op is declared in autograph/ops/<family>.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// A value together with the graph it belongs to. Cheap to copy. It keeps the graph of a GraphBuilder alive; a graph
/// that belongs to somebody else must outlive it.
class Var {
 public:
  /// "Not given": stands for a missing optional input.
  Var() = default;
  Var(Graph& graph, ValueId id);

  bool is_valid() const { return graph_ != nullptr && id_.is_valid(); }
  Graph& graph() const { return *graph_; }
  ValueId id() const { return id_; }
  const Type& type() const { return graph_->type(id_); }
  DType dtype() const { return type().dtype(); }
  const Shape& shape() const { return type().shape(); }
  int64_t rank() const { return shape().rank(); }
  /// Extent of `axis` (negative counts from the end); throws InternalError while it is unknown.
  int64_t dim(int64_t axis) const;

 private:
  std::shared_ptr<Graph> graph_;
  ValueId id_;
};

/// A graph in the making, owned together with the Vars that are made from it:
///
///     GraphBuilder graph;
///     const Var x = graph.input("x", DType::f32, {2, 3});
///     graph.output("y", relu(2 * x + 1));
///     const Executable program = compile(graph.build());
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name = "");
  /// An input of the graph.
  Var input(std::string name, DType dtype, Shape shape);
  /// A constant; shares the tensor's buffer.
  Var constant(Tensor tensor, std::string name = "");
  /// A state that is `initial` before the first run; see Graph::add_state().
  Var state(std::string name, Tensor initial);
  /// Makes `value` what `state` is after a run; see Graph::set_update().
  void update(const Var& state, const Var& value);
  /// Declares `value` the next output; throws ValueError when it belongs to another graph or is not given.
  void output(std::string name, const Var& value);
  /// The graph so far, as a copy of its own that shares the constants.
  Graph build() const { return *graph_; }
  /// The graph itself, for builders that take one.
  Graph& graph() const { return *graph_; }

 private:
  std::shared_ptr<Graph> graph_;
};

/// Every node made while it lives gets the provenance "outer/inner/<op>": what `viz` groups by. One thread, nestable.
class ProvenanceScope {
 public:
  explicit ProvenanceScope(const std::string& name);
  ~ProvenanceScope();
  ProvenanceScope(const ProvenanceScope&) = delete;
  ProvenanceScope& operator=(const ProvenanceScope&) = delete;
  /// The current path, "" outside any scope.
  static const std::string& current();

 private:
  size_t previous_length_;
};

/// A graph input.
Var input(Graph& graph, DType dtype, Shape shape, std::string name);
/// A constant.
Var constant(Graph& graph, Tensor tensor, std::string name = "");
/// A state that is `initial` before the first run; see Graph::add_state().
Var state(Graph& graph, Tensor initial, std::string name);
/// Makes `value` what `state` is after a run; see Graph::set_update().
void update(Var state, Var value);
/// A scalar constant of the dtype of `like`.
Var scalar_like(Var like, double value);

/// Applies `op` and returns its first output. The graph is that of the first valid input.
Var apply(const OpDef& op, const std::vector<Var>& inputs, Attributes attributes = {});
/// As apply(), returning all outputs; `num_outputs` as in NodeOptions.
std::vector<Var> apply_all(const OpDef& op, const std::vector<Var>& inputs, Attributes attributes = {},
                           int num_outputs = -1);

// ---- Operators: elementwise, with broadcasting; plain numbers take the dtype of the other operand ------------------

Var operator-(const Var& x);
Var operator+(const Var& a, const Var& b);
Var operator-(const Var& a, const Var& b);
Var operator*(const Var& a, const Var& b);
Var operator/(const Var& a, const Var& b);
Var operator+(const Var& a, double b);
Var operator-(const Var& a, double b);
Var operator*(const Var& a, double b);
Var operator/(const Var& a, double b);
Var operator+(double a, const Var& b);
Var operator-(double a, const Var& b);
Var operator*(double a, const Var& b);
Var operator/(double a, const Var& b);

}  // namespace autograph
