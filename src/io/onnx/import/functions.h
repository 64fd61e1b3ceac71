// Model-local functions: found by domain, name and overload; recursion is refused before anything is expanded.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/onnx/proto.h"

namespace autograph::io {

/// Imported versions by normalised domain.
using Opsets = std::map<std::string, int>;

/// Reads opset_import; throws FormatError when a domain is imported in two versions or with a version below 1.
Opsets read_opsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports);

/// A model-local function.
struct Function {
  const onnx::FunctionProto* proto = nullptr;
  Opsets opsets;                               ///< Its own, completed by those of the model.
  std::vector<onnx::AttributeProto> defaults;  ///< Attributes with default values.
};

/// The functions of a model.
class FunctionTable {
 public:
  /// Throws FormatError on duplicates and on functions that call themselves, BudgetError on calls nested too deep.
  FunctionTable(const onnx::ModelProto& model, const Opsets& model_opsets);

  /// The function that `node` calls, or null when it is an ordinary op.
  const Function* find(const onnx::NodeProto& node) const;

 private:
  void check_recursion() const;
  std::map<std::string, Function> functions_;
};

/// Calls `visit` for every node of `nodes` and of the graphs nested in them. Throws FormatError beyond kMaxGraphDepth.
template <class Nodes, class Visit>
void for_each_node(const Nodes& nodes, const Visit& visit, int depth = 0);

/// Throws the error for graphs nested deeper than kMaxGraphDepth.
[[noreturn]] void throw_too_deep();

template <class Nodes, class Visit>
void for_each_node(const Nodes& nodes, const Visit& visit, int depth) {
  if (depth > kMaxGraphDepth) throw_too_deep();
  for (const onnx::NodeProto& node : nodes) {
    visit(node);
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) for_each_node(attribute.g().node(), visit, depth + 1);
      for (const auto& graph : attribute.graphs()) for_each_node(graph.node(), visit, depth + 1);
    }
  }
}

}  // namespace autograph::io
