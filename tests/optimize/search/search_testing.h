// What the tests of the search share: a cost model that needs no device, and graphs with many rewrites.
#pragma once

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "optimize/cost/cost_model.h"
#include "optimize/match.h"
#include "optimize/rules/rule.h"

namespace autograph {

/// A launch, and a time for each multiplication and each element moved.
class PlainCost : public CostModel {
 public:
  double node_us(const Graph& graph, NodeId id, int) override {
    const Node& node = graph.node(id);
    if (node.op().traits.view || is_weight_only(graph, id)) return 0;
    std::vector<Type> inputs;
    std::vector<Type> outputs;
    for (const ValueId v : node.inputs()) inputs.push_back(v.is_valid() ? graph.type(v) : Type());
    for (const ValueId v : node.outputs()) outputs.push_back(graph.type(v));
    const OpCost cost = cost_of(node.op(), {node.attributes(), inputs, outputs});
    return 1 + 1e-3 * cost.flops + 1e-2 * cost.bytes;
  }
  int threads() const override { return 1; }
};

inline std::vector<const Rule*> every_rule() { return rules_for_search(); }

/// Blocks f * c + f * u with products that share an input, as the SRU has them.
inline Graph gated_blocks(int count, int64_t size = 8) {
  Graph graph("gated");
  Var x = input(graph, DType::f32, {4, size}, "x");
  std::vector<float> elements(static_cast<size_t>(size * size), 0.125F);
  for (int block = 0; block < count; ++block) {
    const auto weight = [&] {
      for (float& e : elements) e = -e * 1.01F;
      return constant(graph, Tensor::of<float>({size, size}, elements));
    };
    const Var f = sigmoid(matmul(x, weight()));
    const Var u = matmul(x, weight());
    x = add(mul(f, x), mul(f, u));
  }
  graph.add_output(x.id(), "y");
  return graph;
}

}  // namespace autograph
