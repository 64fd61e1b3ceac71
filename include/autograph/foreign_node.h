// A node of another format, on its way in or out; ops translate themselves through it without seeing that format.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autograph/op_def.h"

namespace autograph {

/// A node that is being imported: the names and attributes are those of the file, the inputs are values of our graph.
class ForeignNode {
 public:
  Graph& graph;                 ///< Where to add nodes.
  const OpDef& op;              ///< The op whose import function is running.
  std::string op_type;          ///< For example "Conv".
  int opset;                    ///< Imported version of the node's domain.
  std::vector<ValueId> inputs;  ///< Invalid = not given.
  Attributes attributes;        ///< As in the file; dtype codes already turned into DType where the schema says so.
  size_t num_outputs;
  Provenance provenance;
  size_t num_captured = 0;  ///< How many of the last inputs are values that nested graphs captured.

  bool has_input(size_t slot) const { return slot < inputs.size() && inputs[slot].is_valid(); }
  /// Type of input `slot`; Kind::none when not given.
  Type input_type(size_t slot) const;
  /// Elements of input `slot` when it is a constant.
  std::optional<Tensor> constant_input(size_t slot) const;
  /// Puts `value` into `slot`, filling skipped slots with "not given".
  void set_input(size_t slot, ValueId value);
  /// Adds a constant to the graph.
  ValueId constant(Tensor tensor) { return graph.add_constant(std::move(tensor)); }
  /// Moves a list attribute of integers, when present, into a constant i64 input: how ONNX moved axes, pads and shapes.
  void integers_to_input(std::string_view attribute, size_t slot);
  /// Adds a node of `other` with the provenance of this one.
  std::vector<ValueId> add(const OpDef& other, std::vector<ValueId> node_inputs, Attributes node_attributes = {},
                           int node_outputs = -1);
  /// Adds a node of `op` with the current inputs and attributes: the default translation.
  std::vector<ValueId> emit();
};

/// A node that is being exported; starts as a plain copy under the op's first ONNX name.
struct ExportNode {
  const Graph& graph;                ///< Where the node is.
  const Node& node;                  ///< The node.
  int opset;                         ///< Target opset; raised by ops whose attributes need a newer one.
  std::string op_type;               ///< ONNX name to write.
  std::string domain;                ///< ONNX domain to write.
  std::vector<std::string> inputs;   ///< Names; "" = not given.
  std::vector<std::string> outputs;  ///< Names.
  Attributes attributes;             ///< To write.
  /// How many of the last inputs stand for captured values, which ONNX leaves out and nested graphs name directly; ops
  /// with nested graphs set it.
  size_t num_captured = 0;
  /// Adds an initializer and returns its name.
  std::function<std::string(Tensor)> add_initializer;
};

}  // namespace autograph
