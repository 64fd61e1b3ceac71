#include "report/critical_path.h"

#include <algorithm>
#include <deque>
#include <map>

#include "autograph/op_def.h"

namespace autograph {

double critical_path_us(const Graph& graph, const std::vector<StepProfile>& steps) {
  // Names may repeat: equal ones are used up in order.
  std::map<std::pair<std::string, std::string>, std::deque<double>> durations;
  for (const StepProfile& step : steps) durations[{step.op, step.name}].push_back(step.duration_us);
  std::vector<double> ready(graph.value_capacity(), 0);
  double longest = 0;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    const std::string op(node.op().name);
    const std::string name = node.provenance().to_string();
    auto found = durations.find({op, name});
    if (found == durations.end() && name.empty()) found = durations.find({op, op});
    double finish = 0;
    for (const ValueId input : node.inputs()) {
      if (input.is_valid()) finish = std::max(finish, ready[input.index]);
    }
    if (found != durations.end() && !found->second.empty()) {
      finish += found->second.front();
      found->second.pop_front();
    }
    for (const ValueId output : node.outputs()) ready[output.index] = finish;
    longest = std::max(longest, finish);
  }
  return longest;
}

}  // namespace autograph
