#include "engine/node_times.h"

#include <deque>
#include <map>

#include "autograph/op_def.h"

namespace autograph {

std::vector<double> node_times_us(const Graph& graph, const std::vector<StepProfile>& steps) {
  // Names may repeat: equal ones are used up in order.
  std::map<std::pair<std::string, std::string>, std::deque<double>> durations;
  for (const StepProfile& step : steps) durations[{step.op, step.name}].push_back(step.duration_us);
  std::vector<double> times;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    const std::string op(node.op().name);
    const std::string name = node.provenance().to_string();
    auto found = durations.find({op, name});
    if (found == durations.end() && name.empty()) found = durations.find({op, op});
    double us = 0;
    if (found != durations.end() && !found->second.empty()) {
      us = found->second.front();
      found->second.pop_front();
    }
    times.push_back(us);
  }
  return times;
}

}  // namespace autograph
