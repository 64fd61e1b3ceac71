// Builds our graph from a GraphProto.
//
// Names are resolved in scopes: one for the model's graph, one for each call of a model-local function (whose body is
// inlined), one for each nested graph. Nested graphs come out closed: what they capture becomes inputs of the node and
// of every nested graph of that node, after the formal ones; captured constants are copied in, sharing the tensor.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograph/model_io.h"
#include "io/onnx/import/functions.h"
#include "io/onnx/import/read_tensor.h"
#include "io/onnx/op_index.h"

namespace autograph::io {

/// Values of one graph or function body by name; an invalid id is an input of a function that the caller did not give.
struct Scope {
  Graph& graph;
  std::unordered_map<std::string, ValueId> values = {};
};

/// What attribute references and version numbers mean: the same for all graphs of a model or of one function call.
struct Frame {
  const Opsets& opsets;
  std::string prefix;                                                 ///< Of provenance: "" or the calls on the way.
  const std::map<std::string, onnx::AttributeProto>* arguments = {};  ///< Attributes of the call; null: no function.
};

/// Imports the graphs of one model.
class GraphImporter {
 public:
  GraphImporter(const FunctionTable& functions, TensorReader& tensors, const LoadOptions& options)
      : functions_(functions), tensors_(tensors), options_(options) {}

  /// Initializers that are states, each with the output that is its new value or "".
  using States = std::map<std::string, std::string>;
  /// The model's graph. Throws FormatError, UnsupportedError or BudgetError; ValueError for a given input that the
  /// model does not have.
  Graph import_root(const onnx::GraphProto& proto, const Opsets& opsets, const States& states = {});
  /// Inputs that have an initializer and were not among the given ones: constants of the graph.
  const std::vector<std::pair<std::string, Type>>& optional_inputs() const { return optional_inputs_; }
  /// Initializers of those that were among the given ones.
  const std::map<std::string, Tensor>& input_defaults() const { return input_defaults_; }

 private:
  struct Captures;
  void add_initializers(const onnx::GraphProto& proto, Scope& scope, const std::set<std::string>& given = {},
                        const States& states = {});
  void add_states(const onnx::GraphProto& proto, Scope& scope, const States& states);
  static void add_outputs(const onnx::GraphProto& proto, Scope& scope, const States& states);
  void import_nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, Scope& scope, const Frame& frame);
  std::vector<ValueId> import_node(const onnx::NodeProto& node, const std::string& name, Scope& scope,
                                   const Frame& frame);
  std::vector<ValueId> import_op(const onnx::NodeProto& node, const std::string& name, std::vector<ValueId> inputs,
                                 Scope& scope, const Frame& frame);
  std::vector<ValueId> import_call(const Function& function, const onnx::NodeProto& node, const std::string& name,
                                   std::vector<ValueId> inputs, Scope& scope, const Frame& frame);
  Captures find_captures(const std::vector<onnx::AttributeProto>& attributes, const Scope& scope) const;
  static std::vector<Type> captured_types(const Captures& captures, const Graph& outer);
  GraphRef import_branch(const onnx::GraphProto& proto, const Captures& captures, const Graph& outer,
                         const Frame& frame);
  GraphRef import_nested(const onnx::GraphProto& proto, const std::vector<Type>& node_inputs, const Captures& captures,
                         const std::vector<Type>& capture_types, const Graph& outer, const Frame& frame);

  const FunctionTable& functions_;
  TensorReader& tensors_;
  const LoadOptions& options_;
  std::vector<std::pair<std::string, Type>> optional_inputs_;
  std::map<std::string, Tensor> input_defaults_;
  int64_t num_nodes_ = 0;
  int depth_ = 0;
  bool forgets_shapes_ = false;  // inside a branch that is not for the shapes around it
};

}  // namespace autograph::io
