#include "autodiff/capture_weights.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "autodiff/learnable.h"
#include "autodiff/name_pattern.h"
#include "autograph/op_def.h"
#include "graph/schema.h"
#include "ops/defs.h"

namespace autograph {
namespace {

constexpr std::string_view kNumCaptures = "num_captures";

bool counts_captures(const OpDef& op) {
  return std::any_of(op.attributes.begin(), op.attributes.end(),
                     [](const AttributeSpec& spec) { return spec.name == kNumCaptures; });
}

// A branch has no inputs but captured ones.
bool takes_captures(const OpDef& op) { return &op == &if_def() || counts_captures(op); }

class Capturing {
 public:
  explicit Capturing(Graph& graph) : graph_(graph) {
    for (const ValueId id : graph.constants()) constants_.emplace(elements_of(graph.value(id).constant()), id);
    for (uint32_t index = 0; index < graph.value_capacity(); ++index) {
      if (graph.is_live(ValueId{index})) names_.insert(graph.value(ValueId{index}).name());
    }
  }

  void run() {
    for (const NodeId id : graph_.nodes()) {
      if (takes_captures(graph_.node(id).op())) capture(id);
    }
  }

 private:
  using Elements = std::tuple<const void*, DType, Dims>;
  // Constants of a body by what stands for them in the graph.
  using Weights = std::vector<std::pair<ValueId, ValueId>>;
  struct Body {
    std::string attribute;
    Graph graph;
    Weights weights;
  };

  static Elements elements_of(const Tensor& tensor) { return {tensor.raw(), tensor.dtype(), tensor.dims()}; }

  // The constant with these elements, which is made where there is none.
  ValueId constant_like(const Value& weight) {
    const auto [known, is_new] = constants_.try_emplace(elements_of(weight.constant()));
    if (is_new) {
      const std::string& name = weight.name();
      known->second = graph_.add_constant(weight.constant(), name.empty() ? name : take_name(names_, name));
    }
    return known->second;
  }

  std::vector<Body> bodies_of(const Node& node) {
    std::vector<Body> bodies;
    for (const auto& [name, value] : node.attributes()) {
      const auto* graph = std::get_if<GraphRef>(&value);
      if (!graph) continue;
      Body& body = bodies.emplace_back(Body{name, **graph, {}});
      capture_weights(body.graph);
      for (const ValueId id : learnable_values(body.graph)) {
        const Value& weight = body.graph.value(id);
        if (weight.is_constant()) body.weights.emplace_back(id, constant_like(weight));
      }
    }
    return bodies;
  }

  // Every body has an input for every captured value, whether it reads it or not.
  static void read_as_inputs(Body& body, const std::vector<ValueId>& captured, const Graph& around) {
    for (const ValueId outer : captured) {
      const Value& value = around.value(outer);
      const ValueId input = body.graph.add_input(value.type(), value.name());
      for (const auto& [inner, stands_for] : body.weights) {
        if (stands_for != outer) continue;
        body.graph.replace_uses(inner, input);
        body.graph.erase_value(inner);
      }
    }
  }

  void capture(NodeId id) {
    const Node node = graph_.node(id);  // a copy: the graph grows
    std::vector<Body> bodies = bodies_of(node);
    std::vector<ValueId> captured;
    for (const Body& body : bodies) {
      for (const auto& [inner, outer] : body.weights) {
        if (std::find(captured.begin(), captured.end(), outer) == captured.end()) captured.push_back(outer);
      }
    }
    if (captured.empty()) return;
    Attributes attributes = node.attributes();
    for (Body& body : bodies) {
      read_as_inputs(body, captured, graph_);
      attributes.set(body.attribute, std::make_shared<const Graph>(std::move(body.graph)));
    }
    if (counts_captures(node.op())) {
      attributes.set(kNumCaptures, attributes.get_or<int64_t>(kNumCaptures, 0) + std::ssize(captured));
    }
    std::vector<ValueId> inputs = node.inputs();
    inputs.resize(std::max(inputs.size(), num_fixed_inputs(node.op())));
    inputs.insert(inputs.end(), captured.begin(), captured.end());
    replace(id, node, std::move(inputs), std::move(attributes));
  }

  // `node` is a copy of the node.
  void replace(NodeId id, const Node& node, std::vector<ValueId> inputs, Attributes attributes) {
    std::vector<Type> types;
    for (const ValueId output : node.outputs()) types.push_back(graph_.type(output));
    const NodeId capturing =
        graph_.add_node_typed(node.op(), std::move(inputs), std::move(attributes), std::move(types), node.provenance());
    for (size_t k = 0; k < node.outputs().size(); ++k) {
      const ValueId output = graph_.node(capturing).output(k);
      graph_.set_value_name(output, graph_.value(node.output(k)).name());
      graph_.replace_uses(node.output(k), output);
    }
    graph_.erase_node(id);
  }

  Graph& graph_;
  std::map<Elements, ValueId> constants_;
  std::set<std::string> names_;
};

}  // namespace

void capture_weights(Graph& graph) { Capturing(graph).run(); }

}  // namespace autograph
