#include "backends/gpu/emit/text/cell_functions.h"

#include "autograph/graph.h"
#include "backends/gpu/emit/text/scalar_text.h"
#include "base/check.h"

namespace autograph::gpu {

// The nodes that the function stands for, each as a call within the next one.
std::string activation_text(Writer& writer, const NamedActivation& function, DType dtype, const std::string& x) {
  Graph graph("function");
  const Var in(graph, graph.add_input(Type(dtype, Shape::of({}))));
  const ValueId out = apply_activation(function.name, function.parameters, in).id();
  std::vector<std::string> texts(graph.value_capacity());
  texts[in.id().index] = x;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    std::vector<ScalarOperand> operands;
    for (const ValueId v : node.inputs()) {
      const Value& value = graph.value(v);
      operands.push_back({dtype, value.is_constant() ? literal(dtype, value.constant().to_f64()[0]) : texts[v.index]});
    }
    const auto text = scalar_text(writer, node.op(), node.attributes(), operands, dtype);
    AG_CHECK(text, "no text for {} of the activation '{}'", node.op().name, function.name);
    texts[node.output(0).index] = *text;
  }
  return texts[out.index];
}

}  // namespace autograph::gpu
