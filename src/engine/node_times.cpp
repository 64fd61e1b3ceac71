#include "engine/node_times.h"

#include <deque>
#include <map>

#include "autograph/op_def.h"

namespace autograph {

std::vector<NodeSpan> node_spans(const Graph& graph, const std::vector<StepProfile>& steps) {
  // Names may repeat: equal ones are used up in order.
  std::map<std::pair<std::string, std::string>, std::deque<NodeSpan>> ran;
  for (const StepProfile& step : steps) {
    ran[{step.op, step.name}].push_back({step.start_us, step.start_us + step.duration_us});
  }
  std::vector<NodeSpan> spans(graph.node_capacity());
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    const std::string op(node.op().name);
    const std::string name = node.provenance().to_string();
    auto found = ran.find({op, name});
    if (found == ran.end() && name.empty()) found = ran.find({op, op});
    if (found == ran.end() || found->second.empty()) continue;
    spans[id.index] = found->second.front();
    found->second.pop_front();
  }
  return spans;
}

std::vector<double> node_times_us(const Graph& graph, const std::vector<StepProfile>& steps) {
  const std::vector<NodeSpan> spans = node_spans(graph, steps);
  std::vector<double> times;
  for (const NodeId id : graph.topological_order()) times.push_back(spans[id.index].us());
  return times;
}

}  // namespace autograph
