// ios: stages by dynamic programming over endings, and merges of operators that read the same input.
#include "schedule/ios.h"

#include "engine/strategies/merge_siblings.h"
#include "engine/strategies/strategy.h"

namespace autograph {
namespace {

// Of the budget: what to merge, and stages.
constexpr double kMergeShare = 0.3;
constexpr double kSearchShare = 0.4;

// Which siblings become one is decided by stages of the graph before the finishing passes, where merges are rules.
Proposal merge(StrategyContext& context, const Graph& simplified, double share) {
  if (!context.options().use_rules) return context.propose(simplified);
  SiblingMerges merges(context, simplified);
  const TaskGraph tasks = merges.tasks();
  IosOptions options;
  options.max_seconds = share * context.options().budget_seconds;
  options.merge_cost = [&](std::span<const TaskIndex> set) {
    std::vector<NodeId> nodes;
    for (const TaskIndex task : set) nodes.push_back(tasks.tasks[task].node);
    return merges.merged_us(nodes);
  };
  const IosResult found = schedule_ios(tasks, context.limits(), options);
  context.report().candidates += found.num_states;
  Rewritten merged = merges.apply(found.merges);
  return context.propose(merged.candidate->graph(), std::move(merged.steps));
}

}  // namespace

IosResult find_ios_stages(StrategyContext& context, const Graph& finished, double share) {
  IosOptions options;
  options.max_seconds = share * context.options().budget_seconds;
  const TaskGraph tasks = context.tasks(finished);
  options.stage_cost = context.device().stage_cost(finished, tasks);
  return schedule_ios(tasks, context.limits(), options);
}

Proposal run_ios(StrategyContext& context, const Graph& simplified) {
  return propose_ios(context, simplified, kMergeShare, kSearchShare);
}

Proposal propose_ios(StrategyContext& context, const Graph& simplified, double merge_share, double stages_share) {
  Proposal proposal = merge(context, simplified, merge_share);
  IosResult result = find_ios_stages(context, proposal.finished, stages_share);
  context.report().candidates += result.num_states;
  proposal.schedule = std::move(result.schedule);
  return proposal;
}

}  // namespace autograph
