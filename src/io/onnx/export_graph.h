// Builds a GraphProto from our graph: the reverse of import_graph.h.
//
// States become initializers that are inputs, too, so that nobody takes them for constants, and updates further
// outputs. Ops without an ONNX form are replaced by their bodies first. Constants become initializers, captured inputs
// of nested graphs become references to the outer names again.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "autograph/foreign_node.h"
#include "io/onnx/import/functions.h"
#include "io/onnx/proto.h"

namespace autograph::io {

/// A copy of `graph` in which every op has an ONNX form. Throws UnsupportedError listing the ops that have none.
Graph with_onnx_forms(const Graph& graph);

/// The versions of all domains that the graph's ops need, at least `opset` of ai.onnx.
Opsets needed_opsets(const Graph& graph, int opset);

/// Receives the constants; returns the message of the initializer to fill in.
class InitializerSink {
 public:
  virtual ~InitializerSink() = default;
  /// Fills `proto`, which has a name already, with the elements of `tensor`.
  virtual void store(const Tensor& tensor, onnx::TensorProto& proto) = 0;
};

/// Sets data type, dims and elements (raw_data, or string_data).
void write_tensor(const Tensor& tensor, onnx::TensorProto& proto);

/// Hands out names that differ from each other.
class UniqueNames {
 public:
  /// `wanted` the first time, then `wanted`_2, `wanted`_3, ...; amortised constant time.
  std::string take(const std::string& wanted);

 private:
  std::unordered_map<std::string, int> copies_;  // how often a name was asked for
};

/// Writes one model's graphs.
class GraphExporter {
 public:
  GraphExporter(const Opsets& opsets, InitializerSink& sink) : opsets_(opsets), sink_(sink) {}

  /// Fills `proto`; the last inputs stand for the outer names `captured`.
  void export_graph(const Graph& graph, const std::vector<std::string>& captured, onnx::GraphProto& proto);

  /// Writes what inputs of `proto` are where a run does not give them.
  void export_defaults(const std::map<std::string, Tensor>& defaults, onnx::GraphProto& proto);

  /// Names of the states written so far, each with the output that is its new value, or "" where it has none.
  const std::map<std::string, std::string>& states() const { return states_; }

 private:
  using Names = std::vector<std::string>;  // of values, by index; "" until named
  void name_inputs(const Graph& graph, const std::vector<std::string>& captured, onnx::GraphProto& proto, Names& names);
  void export_states(const Graph& graph, onnx::GraphProto& proto, Names& names);
  std::vector<std::string> name_outputs(const Graph& graph, const std::vector<ValueId>& outputs, Names& names);
  void export_constants(const Graph& graph, onnx::GraphProto& proto, Names& names);
  void export_node(const Graph& graph, NodeId id, Names& names, onnx::GraphProto& proto);
  void export_attribute(const std::string& name, const AttributeValue& value, const std::vector<std::string>& captured,
                        onnx::NodeProto& node);

  const Opsets& opsets_;
  InitializerSink& sink_;
  UniqueNames value_names_;
  UniqueNames node_names_;
  std::map<std::string, std::string> states_;
};

}  // namespace autograph::io
