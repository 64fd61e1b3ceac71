// Var: a handle on a value, so that models read like formulas: `relu(conv(x, w, b))`.
//
// The typed builder of each op is declared in autograph/ops/<family>.h. Builders work on values of two kinds: those of
// a graph, to which they add nodes, and eager ones (autograph/eager.h), with which they compute at once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "autograph/graph.h"
#include "autograph/number.h"

namespace autograph {

class Var;

/// What a Var stands for that belongs to no graph: elements that are there. Implemented by eager.h, which this header
/// knows nothing of.
class EagerValue {
 public:
  virtual ~EagerValue() = default;
  EagerValue(const EagerValue&) = delete;
  EagerValue& operator=(const EagerValue&) = delete;

  /// All extents of tensors are known.
  const Type& type() const { return *type_; }
  /// Its elements, where builders may look at them: not of sequences, and not while a function is captured.
  virtual const Tensor* known() const = 0;
  /// Computes `op`; all of `inputs` are eager or not given, at least one is eager. As apply_all().
  virtual std::vector<Var> apply(const OpDef& op, const std::vector<Var>& inputs, Attributes attributes,
                                 int num_outputs) = 0;
  /// A further value of this kind.
  virtual Var constant(Tensor tensor) const = 0;
  /// What stands for this value in `graph`: a constant, or what a capture reads it from.
  virtual Var in_graph(Graph& graph) = 0;
  /// The same elements as a value of its own that gradients may be asked for.
  virtual Var variable() const = 0;
  /// As vjp() of autodiff.h, whose arguments have been checked; `outputs` are eager.
  virtual std::vector<Var> vjp(const std::vector<Var>& outputs, const std::vector<Var>& output_gradients,
                               const std::vector<Var>& wanted) = 0;
  /// What the hooks of this value make of its gradient, which may be of a graph.
  virtual Var hooked(Var gradient) const = 0;

 protected:
  explicit EagerValue(std::shared_ptr<const Type> type) : type_(std::move(type)) {}
  std::shared_ptr<const Type> type_;
};

/// A value of a graph, together with the graph, or an eager value. Cheap to copy. It keeps the graph of a GraphBuilder
/// alive, and an eager value; a graph that belongs to somebody else must outlive it.
class Var {
 public:
  /// "Not given": stands for a missing optional input.
  Var() = default;
  Var(Graph& graph, ValueId id);
  explicit Var(std::shared_ptr<EagerValue> value) : holder_(std::move(value)) {}

  bool is_valid() const { return holder_ != nullptr; }
  /// Is it a value that belongs to no graph?
  bool is_eager() const { return holder_ && !id_.is_valid(); }
  /// The graph that it belongs to; throws ValueError for eager values and for those that are not given, as all below
  /// does for the latter.
  Graph& graph() const {
    if (!id_.is_valid()) refuse_graph();
    return *static_cast<Graph*>(holder_.get());
  }
  /// Names it in its graph; invalid for eager values.
  ValueId id() const { return id_; }
  /// Only for eager values.
  EagerValue& eager() const { return *static_cast<EagerValue*>(holder_.get()); }
  const Type& type() const { return is_eager() ? eager().type() : graph().type(id_); }
  DType dtype() const { return type().dtype(); }
  const Shape& shape() const { return type().shape(); }
  /// Number of dims; throws ShapeError while it is unknown.
  int64_t rank() const;
  /// Extent of `axis` (negative counts from the end); throws ShapeError while it is unknown or where there is none.
  int64_t dim(int64_t axis) const;
  /// The elements, where they are known: of constants of a graph, and of eager values. Null otherwise.
  const Tensor* known() const;
  /// The part at `index` (negative counts from the end) along the first axis, which goes away.
  Var operator[](int64_t index) const;

 private:
  [[noreturn]] void refuse_graph() const;
  // The Graph where id_ is valid, else the EagerValue: one pointer for both, so that Vars of graphs stay small.
  std::shared_ptr<void> holder_;
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
  /// An input of the graph; throws ValueError when it has one of that name, by which it is given a value. As input().
  Var input(std::string name, DType dtype, Shape shape);
  /// A constant; shares the tensor's buffer.
  Var constant(Tensor tensor, std::string name = "");
  /// A state that is `initial` before the first run; see Graph::add_state().
  Var state(std::string name, Tensor initial);
  /// Makes `value` what `state` is after a run; see Graph::set_update(). Throws ValueError when one of them belongs to
  /// another graph or is not given.
  void update(const Var& state, const Var& value);
  /// Declares `value` the next output; throws ValueError when it belongs to another graph or is not given, or when
  /// there is an output of that name.
  void output(std::string name, const Var& value);
  /// The graph so far, as a copy of its own that shares the constants.
  Graph build() const { return *graph_; }
  /// The graph itself, for builders that take one.
  Graph& graph() const { return *graph_; }

 private:
  void check_own(const Var& value, const std::string& what) const;

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

/// The provenance of every node made while it lives ends with " at PLACE", which `place` gives: a line of the program
/// that builds the graph, without slashes; "" adds nothing. One thread, nestable.
class PlaceScope {
 public:
  explicit PlaceScope(std::string (*place)());
  ~PlaceScope();
  PlaceScope(const PlaceScope&) = delete;
  PlaceScope& operator=(const PlaceScope&) = delete;
  /// Where a node is made now, "" outside any scope.
  static std::string current();

 private:
  std::string (*place_)();
  const PlaceScope* outer_;
};

/// A graph input. Throws TypeError without a dtype, ShapeError for extents below 0; -1 stands for an unknown one.
Var input(Graph& graph, DType dtype, Shape shape, std::string name);
/// A constant.
Var constant(Graph& graph, Tensor tensor, std::string name = "");
/// A state that is `initial` before the first run; see Graph::add_state().
Var state(Graph& graph, Tensor initial, std::string name);
/// Makes `value` what `state` is after a run; see Graph::set_update().
void update(Var state, Var value);
/// A constant of the graph that `like` belongs to, or an eager value where `like` is one: what builders and gradient
/// rules make their constants with.
Var constant_like(const Var& like, Tensor tensor);
/// A scalar constant of the dtype of `like`; throws ValueError where that is an integer dtype that does not have
/// `value`.
Var scalar_like(Var like, Number value);

/// Applies `op` and returns its first output. The graph is that of the first input that has one; eager values beside it
/// become constants there. Where all inputs are eager, the result is.
Var apply(const OpDef& op, const std::vector<Var>& inputs, Attributes attributes = {});
/// As apply(), returning all outputs; `num_outputs` as in NodeOptions.
std::vector<Var> apply_all(const OpDef& op, const std::vector<Var>& inputs, Attributes attributes = {},
                           int num_outputs = -1);

// ---- Operators: elementwise, with broadcasting; plain numbers are scalar_like() the other operand ------------------

Var operator-(const Var& x);
Var operator+(const Var& a, const Var& b);
Var operator-(const Var& a, const Var& b);
Var operator*(const Var& a, const Var& b);
Var operator/(const Var& a, const Var& b);
Var operator+(const Var& a, Number b);
Var operator-(const Var& a, Number b);
Var operator*(const Var& a, Number b);
Var operator/(const Var& a, Number b);
Var operator+(Number a, const Var& b);
Var operator-(Number a, const Var& b);
Var operator*(Number a, const Var& b);
Var operator/(Number a, const Var& b);

/// `a` becomes the sum (and so on): another value. Whoever holds the one before keeps it.
Var& operator+=(Var& a, const Var& b);
Var& operator-=(Var& a, const Var& b);
Var& operator*=(Var& a, const Var& b);
Var& operator/=(Var& a, const Var& b);
Var& operator+=(Var& a, Number b);
Var& operator-=(Var& a, Number b);
Var& operator*=(Var& a, Number b);
Var& operator/=(Var& a, Number b);

/// Bools, element by element; equal() is a function, so that nobody takes it for a comparison of handles.
Var operator<(const Var& a, const Var& b);
Var operator>(const Var& a, const Var& b);
Var operator<=(const Var& a, const Var& b);
Var operator>=(const Var& a, const Var& b);
Var operator<(const Var& a, Number b);
Var operator>(const Var& a, Number b);
Var operator<=(const Var& a, Number b);
Var operator>=(const Var& a, Number b);
Var operator<(Number a, const Var& b);
Var operator>(Number a, const Var& b);
Var operator<=(Number a, const Var& b);
Var operator>=(Number a, const Var& b);

}  // namespace autograph
