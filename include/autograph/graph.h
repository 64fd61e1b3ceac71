// The typed graph: values, nodes, nested graphs. Every front end produces one, every stage reads one.
//
// Nodes and values live in the graph and are named by small ids, which stay valid until the node is erased. A value is
// a graph input, a constant (a weight; its tensor is shared, never copied), a state (a parameter, a running statistic,
// a counter: what one run leaves for the next), or an output of a node. Nested graphs (branches and loop bodies) are
// attributes and are closed: what they use from outside comes in through inputs of the node. They have no states.
//
// A Graph may be read by many threads at once; changing it is for one thread alone.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograph/attribute.h"
#include "autograph/hash.h"
#include "autograph/shape.h"
#include "autograph/tensor.h"

namespace autograph {

struct OpDef;

/// Names a node of one graph.
struct NodeId {
  uint32_t index = std::numeric_limits<uint32_t>::max();  ///< Position in the graph's node table.
  bool is_valid() const { return index != std::numeric_limits<uint32_t>::max(); }
  auto operator<=>(const NodeId&) const = default;
};

/// Names a value of one graph. An invalid id as a node's input means "optional input not given".
struct ValueId {
  uint32_t index = std::numeric_limits<uint32_t>::max();  ///< Position in the graph's value table.
  bool is_valid() const { return index != std::numeric_limits<uint32_t>::max(); }
  auto operator<=>(const ValueId&) const = default;
};

/// Where a node came from, in the user's words: names in the imported file or lines of source. Survives rewrites.
class Provenance {
 public:
  /// Nothing known.
  Provenance() = default;
  /// One origin, for example the ONNX node name "/layer1/conv1/Conv".
  static Provenance named(std::string origin);
  /// The same, and the line of the program that made it, for messages: "attention.py:124". It is no part of the name.
  static Provenance named(std::string origin, std::string place);
  /// The origins of both, without repetition.
  static Provenance merged(const Provenance& a, const Provenance& b);
  /// All origins, oldest first.
  std::span<const std::string> origins() const;
  /// Lines of programs, oldest first.
  std::span<const std::string> places() const;
  /// "a + b"; "" when nothing is known.
  std::string to_string() const;
  bool empty() const { return !known_; }

 private:
  struct Known {
    std::vector<std::string> origins, places;
  };
  std::shared_ptr<const Known> known_;
};

/// One place where a value is read.
struct Use {
  NodeId node;    ///< The reader.
  uint32_t slot;  ///< Which of its inputs.
  bool operator==(const Use&) const = default;
};

/// An application of an op.
class Node {
 public:
  const OpDef& op() const { return *op_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  /// Input `slot`, or an invalid id when it is not given.
  ValueId input(size_t slot) const { return slot < inputs_.size() ? inputs_[slot] : ValueId{}; }
  ValueId output(size_t slot) const { return outputs_[slot]; }
  const Attributes& attributes() const { return attributes_; }
  const Provenance& provenance() const { return provenance_; }

 private:
  friend class Graph;
  const OpDef* op_ = nullptr;  // null: erased
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  Attributes attributes_;
  Provenance provenance_;
};

/// A graph input, a constant, a state or an output of a node.
class Value {
 public:
  const Type& type() const { return type_; }
  /// The user's name; may be "".
  const std::string& name() const { return name_; }
  /// The node that makes it; invalid for inputs, constants and states.
  NodeId producer() const { return producer_; }
  /// Which output of the producer, or which graph input.
  uint32_t slot() const { return slot_; }
  bool is_input() const { return kind_ == Kind::input; }
  bool is_constant() const { return kind_ == Kind::constant; }
  bool is_state() const { return kind_ == Kind::state; }
  /// Elements of a constant; an absent tensor for other values.
  const Tensor& constant() const { return kind_ == Kind::constant ? elements_ : no_elements(); }
  /// Elements of a state before the first run; an absent tensor for other values.
  const Tensor& initial() const { return kind_ == Kind::state ? elements_ : no_elements(); }
  /// All readers inside this graph (not the graph's outputs), in no particular order.
  const std::vector<Use>& uses() const { return uses_; }

 private:
  friend class Graph;
  enum class Kind : uint8_t { erased, input, constant, state, output };
  Kind kind_ = Kind::erased;
  uint32_t slot_ = 0;
  NodeId producer_;
  Type type_;
  std::string name_;
  static const Tensor& no_elements();
  Tensor elements_;  // of a constant, or of a state before the first run
  std::vector<Use> uses_;
};

/// What a state is after a run: the value that replaces it. All readers of the state see the old one.
struct StateUpdate {
  ValueId state;
  ValueId value;
  bool operator==(const StateUpdate&) const = default;
};

/// What Graph::states_to_inputs() took from a graph.
struct HiddenStates {
  std::vector<Tensor> initial;  ///< Of the states, which are the last inputs.
  std::vector<size_t> updated;  ///< By further output: which of these states it updates.
};

/// What add_node takes besides op, inputs and attributes.
struct NodeOptions {
  Provenance provenance;  ///< Where the node comes from.
  int num_outputs = -1;   ///< Number of outputs; -1: as many as the op always has.
};

class GraphTransaction;

/// A directed acyclic graph of typed values. Handles (Var) on a graph that is in a shared_ptr keep it alive.
class Graph : public std::enable_shared_from_this<Graph> {
 public:
  explicit Graph(std::string name = "") : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

  // ---- Building ------------------------------------------------------------------------------------------------

  /// Adds a graph input.
  ValueId add_input(Type type, std::string name = "");
  /// Adds a constant; shares the tensor's buffer.
  ValueId add_constant(Tensor tensor, std::string name = "");
  /// Adds a node: checks inputs and attributes against the op's schema, fills in defaults and infers output types.
  /// Throws ShapeError, TypeError or ValueError naming op, node and values when they do not fit.
  NodeId add_node(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes = {}, NodeOptions options = {});
  /// As above, with the types of the outputs given instead of inferred; the verifier checks them later.
  NodeId add_node_typed(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes,
                        std::vector<Type> output_types, Provenance provenance = {});
  /// Declares `value` the next output of the graph.
  void add_output(ValueId value, std::string name = "");
  /// Adds a state that is `initial` before the first run. Its name is how stores, files and other graphs know it: it
  /// must not be empty, nor that of another state of this graph.
  ValueId add_state(Tensor initial, std::string name);
  /// Makes `value` what `state` is after a run, instead of what an earlier call said. Throws TypeError or ShapeError
  /// when dtypes or known shapes differ, ValueError when `state` is none.
  void set_update(ValueId state, ValueId value);
  /// Has `value` computed in every run, for what its node does besides, behind what was kept before. add_node() does so
  /// for ops with effects, which thereby happen in the order in which they are added.
  void keep(ValueId value);

  // ---- Reading -------------------------------------------------------------------------------------------------

  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  /// The user's name of output `index`.
  const std::string& output_name(size_t index) const { return output_names_[index]; }
  const Node& node(NodeId id) const { return nodes_[id.index]; }
  const Value& value(ValueId id) const { return values_[id.index]; }
  const Type& type(ValueId id) const { return values_[id.index].type_; }
  /// Live nodes in order of insertion, which need not be topological after rewrites.
  std::vector<NodeId> nodes() const;
  size_t num_nodes() const { return num_nodes_; }
  /// Live constants.
  std::vector<ValueId> constants() const;
  /// States, in the order in which they were added.
  const std::vector<ValueId>& states() const { return states_; }
  /// New values of states, in the order of set_update(); states without one stay as they are.
  const std::vector<StateUpdate>& updates() const { return updates_; }
  /// Values that a run computes though nothing may read them, in the order of their effects; see keep().
  const std::vector<ValueId>& kept() const { return kept_; }
  /// All that a run has to compute: outputs, new values of states, and what is kept.
  std::vector<ValueId> roots() const;
  /// Upper bounds of ids, erased ones included: sizes for side tables indexed by id.
  size_t node_capacity() const { return nodes_.size(); }
  size_t value_capacity() const { return values_.size(); }
  bool is_live(NodeId id) const { return id.index < nodes_.size() && nodes_[id.index].op_; }
  bool is_live(ValueId id) const { return id.index < values_.size() && values_[id.index].kind_ != Value::Kind::erased; }
  /// How often `value` is a root: an output of the graph, the new value of a state, or kept.
  size_t num_output_uses(ValueId value) const;
  /// Every node after the nodes whose outputs it reads, and what is kept in the order of kept() as far as that allows;
  /// the order is the same for the same graph.
  /// Throws FormatError naming the nodes on a cycle when there is one.
  std::vector<NodeId> topological_order() const;

  // ---- Changing ------------------------------------------------------------------------------------------------

  /// Makes input `slot` of `node` read `value`. May create a cycle, which the verifier reports.
  void set_input(NodeId node, size_t slot, ValueId value);
  /// Makes every reader of `from` read `to`, which also becomes what `from` is a root for.
  void replace_uses(ValueId from, ValueId to);
  /// Removes a node whose outputs have no readers; throws InternalError otherwise.
  void erase_node(NodeId node);
  /// Removes a constant, graph input or state without readers; with a state what updates it.
  void erase_value(ValueId value);
  /// Removes nodes that no root depends on and constants without readers; returns the number of nodes removed.
  size_t erase_dead();
  void set_type(ValueId value, Type type) { change(value).type_ = std::move(type); }
  void set_value_name(ValueId value, std::string name) { change(value).name_ = std::move(name); }
  void set_provenance(NodeId node, Provenance provenance) { change(node).provenance_ = std::move(provenance); }
  /// Sets an attribute without checking it; call infer_types afterwards when it affects shapes.
  void set_attribute(NodeId node, std::string_view name, AttributeValue value) {
    change(node).attributes_.set(name, std::move(value));
  }
  /// Replaces the elements of a constant; dtype and shape of the value follow.
  void set_constant(ValueId value, Tensor tensor);
  /// Replaces what a state is before the first run; throws TypeError or ShapeError when its type is another.
  void set_initial(ValueId state, Tensor tensor);
  /// Makes constants of all states, of what they are before the first run, and drops the updates: for inference.
  void freeze();
  /// Makes a further input of every state and a further output of every update, in order, for what knows functions
  /// only. All ids stay as they are.
  HiddenStates states_to_inputs();
  /// Undoes states_to_inputs() of this graph, or of the one that it was rewritten from.
  void inputs_to_states(const HiddenStates& hidden);

 private:
  friend class GraphTransaction;
  // Who keeps what a change overwrites; copies of a graph are in no transaction.
  struct Journal {
    GraphTransaction* transaction = nullptr;
    Journal() = default;
    Journal(const Journal&) {}
    Journal& operator=(const Journal&) { return *this; }  // NOLINT(bugprone-unhandled-self-assignment)
  };

  ValueId new_value(Value::Kind kind, Type type, std::string name);
  void give_unique_ids(const OpDef& op, Attributes& attributes) const;
  void add_use(ValueId value, Use use);
  void remove_use(ValueId value, Use use);
  // For changing: tell the transaction, if there is one, first.
  Node& change(NodeId id);
  Value& change(ValueId id);

  Journal journal_;
  std::string name_;
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::vector<std::string> output_names_;
  std::vector<ValueId> states_;
  std::vector<StateUpdate> updates_;
  std::vector<ValueId> kept_;
  size_t num_nodes_ = 0;
};

/// Changes of a graph that can be taken back: everything that happens to the graph while the transaction lives is
/// undone when it ends, unless commit() was called. Takes time and memory in proportion to what is changed, not to the
/// graph. One at a time for a graph, which must neither be moved nor assigned to meanwhile.
class GraphTransaction {
 public:
  explicit GraphTransaction(Graph& graph);
  ~GraphTransaction();
  GraphTransaction(const GraphTransaction&) = delete;
  GraphTransaction& operator=(const GraphTransaction&) = delete;
  /// Keeps the changes; the transaction is over.
  void commit();
  /// Takes the changes back, exactly; the transaction is over.
  void rollback();

 private:
  friend class Graph;
  void keep(NodeId id);
  void keep(ValueId id);
  void leave();

  Graph* graph_;
  GraphTransaction* outer_;  // null: the outermost
  size_t num_node_entries_;
  size_t num_value_entries_;
  size_t num_nodes_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::vector<std::string> output_names_;
  std::vector<ValueId> states_;
  std::vector<StateUpdate> updates_;
  std::vector<ValueId> kept_;
  std::vector<std::pair<uint32_t, Node>> kept_nodes_;    // as they were, by number
  std::vector<std::pair<uint32_t, Value>> kept_values_;  // likewise
};

/// Hash of what a graph computes as it is written: the same for graphs that differ only in node order and names,
/// different when an op, an attribute, a weight, a type of an input, a connection or the order of effects differs.
Hash128 structural_hash(const Graph& graph);

/// "%12 conv "layer1.conv1"": how messages name a node.
std::string describe(const Graph& graph, NodeId node);

}  // namespace autograph
