#include "engine/strategies/schedule_climb.h"

#include <algorithm>

#include "schedule/schedulers/list.h"
#include "schedule/schedulers/task_stages.h"

namespace autograph {
namespace {

// Graphs that leave the queue without a gain, at most: each is looked at as a whole as often as rules apply to it.
constexpr int64_t kMaxIdle = 40;
// Where the schedule is hardly longer than the longest way, only nodes on ways that are nearly as long are rewritten.
constexpr double kHardlyLonger = 0.9;
constexpr double kNearlyAsLong = 0.9;

// Those nodes, by number; empty: all.
std::vector<bool> nodes_on_long_ways(const CandidateGraph& candidate, double makespan_us) {
  const Graph& graph = candidate.graph();
  const std::vector<NodeId> order = graph.topological_order();
  std::vector<double> until(graph.node_capacity(), 0), from(graph.node_capacity(), 0);  // with the node
  double longest_us = 0;
  for (const NodeId id : order) {
    for (const ValueId v : graph.node(id).inputs()) {
      const NodeId producer = v.is_valid() ? graph.value(v).producer() : NodeId{};
      if (producer.is_valid()) until[id.index] = std::max(until[id.index], until[producer.index]);
    }
    until[id.index] += candidate.node_us(id);
    longest_us = std::max(longest_us, until[id.index]);
  }
  if (longest_us < kHardlyLonger * makespan_us) return {};
  std::vector<bool> chosen(graph.node_capacity(), false);
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    for (const ValueId v : graph.node(*id).outputs()) {
      for (const Use& use : graph.value(v).uses()) {
        from[id->index] = std::max(from[id->index], from[use.node.index]);
      }
    }
    chosen[id->index] = until[id->index] + from[id->index] >= kNearlyAsLong * longest_us;
    from[id->index] += candidate.node_us(*id);
  }
  return chosen;
}

}  // namespace

std::vector<Rewritten> climb_by_schedule(StrategyContext& context, const Graph& graph, FusedCost& cost, double until,
                                         double shown_us) {
  ListMakespan makespan(context.limits());
  BacktrackingOptions how{.alpha = 0, .max_idle = kMaxIdle, .keep = static_cast<size_t>(context.options().keep)};
  how.whole_us = [&](const CandidateGraph& candidate) {
    const TaskCost task_cost = [&](const Graph& g, NodeId id) {
      return context.task_to_finish(g, id, candidate.node_us(id), candidate.node_load(id));
    };
    return makespan.us(without_free_tasks(make_task_graph(candidate.graph(), task_cost)).graph);
  };
  if (context.has_loads(graph)) {
    how.choose_nodes = [&](const CandidateGraph& candidate) {
      return nodes_on_long_ways(candidate, how.whole_us(candidate));
    };
  }
  std::vector<Rewritten> found = context.search(CandidateGraph(graph, cost), how, until, shown_us);
  std::erase_if(found, [](const Rewritten& rewritten) { return rewritten.steps.empty(); });
  return found;
}

}  // namespace autograph
