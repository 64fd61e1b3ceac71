#include "optimize/expert_mix.h"

#include "ops/defs.h"
#include "optimize/match.h"

namespace autograph {
namespace {

bool is_static(const Graph& graph, ValueId v) { return graph.type(v).is_tensor() && graph.type(v).is_static(); }

Dims dims_of(const Graph& graph, ValueId v) { return graph.type(v).shape().static_dims(); }

// Reads one term after the other; all must fit the first.
class MixReader {
 public:
  MixReader(const Graph& graph, bool (*is_weight)(const Graph&, ValueId)) : graph_(graph), is_weight_(is_weight) {}

  std::optional<ExpertMix> read(NodeId sum) {
    const Node& node = graph_.node(sum);
    if (&node.op() != &sum_def() || node.inputs().size() < 2) return std::nullopt;
    for (const ValueId term : node.inputs()) {
      if (!read_term(term)) return std::nullopt;
    }
    mix_.nodes.push_back(sum);
    return mix_;
  }

 private:
  // The node of `op` that makes `v`, which nothing else reads.
  NodeId maker(ValueId v, const OpDef& op) const {
    return made_once_by(graph_, v, op) ? graph_.value(v).producer() : NodeId{};
  }

  bool read_term(ValueId term) {
    const NodeId scaled = maker(term, mul_def());
    if (!scaled.is_valid()) return false;
    for (const size_t slot : {0, 1}) {
      const NodeId product = maker(graph_.node(scaled).input(slot), matmul_def());
      if (!product.is_valid()) continue;
      Expert expert{
          .gate = {}, .up = {}, .down = graph_.node(product).input(1), .factor = graph_.node(scaled).input(1 - slot)};
      std::vector<NodeId> nodes;
      if (!read_hidden(graph_.node(product).input(0), expert, nodes) || !fits(expert)) continue;
      nodes.insert(nodes.end(), {product, scaled});
      mix_.nodes.insert(mix_.nodes.end(), nodes.begin(), nodes.end());
      mix_.experts.push_back(expert);
      return true;
    }
    return false;
  }

  // swish(x gate) * (x up)
  bool read_hidden(ValueId hidden, Expert& expert, std::vector<NodeId>& nodes) {
    const NodeId gated = maker(hidden, mul_def());
    if (!gated.is_valid()) return false;
    for (const size_t slot : {0, 1}) {
      const NodeId swish = maker(graph_.node(gated).input(slot), swish_def());
      const NodeId up = maker(graph_.node(gated).input(1 - slot), matmul_def());
      if (!swish.is_valid() || !up.is_valid() || graph_.node(swish).attributes().real("alpha") != 1.0F) continue;
      const NodeId gate = maker(graph_.node(swish).input(0), matmul_def());
      if (!gate.is_valid() || graph_.node(gate).input(0) != graph_.node(up).input(0)) continue;
      if (mix_.x.is_valid() && mix_.x != graph_.node(gate).input(0)) continue;
      mix_.x = graph_.node(gate).input(0);
      expert.gate = graph_.node(gate).input(1);
      expert.up = graph_.node(up).input(1);
      nodes = {gate, swish, up, gated};
      return true;
    }
    return false;
  }

  bool fits(const Expert& expert) {
    for (const ValueId weight : {expert.gate, expert.up, expert.down}) {
      if (!is_static(graph_, weight) || !is_weight_(graph_, weight)) return false;
      if (graph_.type(weight).shape().rank() != 2) return false;
    }
    if (!is_static(graph_, mix_.x) || !is_static(graph_, expert.factor)) return false;
    const Dims x = dims_of(graph_, mix_.x), gate = dims_of(graph_, expert.gate), down = dims_of(graph_, expert.down);
    Dims factor = x;
    if (factor.empty()) return false;
    factor.back() = 1;
    if (dims_of(graph_, expert.factor) != factor || dims_of(graph_, expert.up) != gate || down[0] != gate[1]) {
      return false;
    }
    if (mix_.experts.empty()) {
      mix_.width = gate[0], mix_.inner = gate[1], mix_.columns = down[1], mix_.tokens = 1;
      for (size_t axis = 0; axis + 1 < x.size(); ++axis) mix_.tokens *= x[axis];
    }
    return gate == Dims{mix_.width, mix_.inner} && down == Dims{mix_.inner, mix_.columns};
  }

  const Graph& graph_;
  bool (*is_weight_)(const Graph&, ValueId);
  ExpertMix mix_;
};

}  // namespace

std::optional<ExpertMix> read_expert_mix(const Graph& graph, NodeId sum, bool (*is_weight)(const Graph&, ValueId)) {
  return MixReader(graph, is_weight).read(sum);
}

}  // namespace autograph
