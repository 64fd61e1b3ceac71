#include "autodiff/row_scan.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/shape.h"
#include "graph/nested/extract_subgraph.h"
#include "graph/nested/inline_graph.h"
#include "graph/nodes_behind.h"
#include "ops/gradients.h"

namespace autograph {
namespace {

// The nodes between `from` and `to`, in order.
std::vector<NodeId> nodes_between(const Graph& graph, ValueId from, ValueId to) {
  const std::vector<uint8_t> needed = nodes_behind(graph, {to}, [&](ValueId value) { return value == from; });
  std::unordered_set<uint32_t> reached{from.index};
  std::vector<NodeId> nodes;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    const bool reads = std::any_of(node.inputs().begin(), node.inputs().end(),
                                   [&](ValueId input) { return input.is_valid() && reached.contains(input.index); });
    if (!needed[id.index] || !reads) continue;
    nodes.push_back(id);
    for (const ValueId output : node.outputs()) reached.insert(output.index);
  }
  return nodes;
}

Dims joined(Dims a, const Dims& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

Var scan_unit_rows(const Var& seed, const Var& result) {
  Graph& graph = seed.graph();
  const Dims rows = seed.shape().static_dims();
  const Dims inner = result.shape().static_dims();
  const int64_t count = *seed.shape().num_elements();
  const std::vector<NodeId> nodes = nodes_between(graph, seed.id(), result.id());
  const Dims dims = joined(rows, inner);
  if (nodes.empty() || count == 0) return expand(result, dims);

  identity(result);  // a reader outside the part, which makes the result one of its outputs
  const Subgraph part = extract_subgraph(graph, nodes);
  Graph body("row");
  std::vector<Var> captured;
  std::vector<ValueId> arguments;
  const ValueId row = body.add_input(Type(seed.dtype(), Shape::of({count})));
  const ValueId shaped = reshape(Var(body, row), constant(body, Tensor::vector(rows)), true).id();
  for (const ValueId input : part.inputs) {
    if (input == seed.id()) {
      arguments.push_back(shaped);
      continue;
    }
    captured.emplace_back(graph, input);
    arguments.push_back(body.add_input(graph.type(input)));
  }
  const std::vector<ValueId> outputs = inline_graph(body, part.graph, arguments);
  const auto place = std::find(part.outputs.begin(), part.outputs.end(), result.id());
  body.add_output(outputs[static_cast<size_t>(place - part.outputs.begin())]);

  const Var unit = eye_like(expand(scalar_like(seed, 0), {count, count}));
  return reshape(scan({}, {unit}, body, captured)[0], constant(graph, Tensor::vector(dims)), true);
}

}  // namespace autograph
