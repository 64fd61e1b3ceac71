// ios: stages by dynamic programming over endings, whose costs are measured on the device, and merges of operators that
// read the same input.
#include "schedule/schedulers/ios.h"

#include "engine/strategies/merge_siblings.h"
#include "engine/strategies/trials/incumbent.h"
#include "engine/strategies/trials/measured_stages.h"

namespace autograph {
namespace {

// Of the budget: what to merge, and stages.
constexpr double kMergeShare = 0.15;
constexpr double kStagesShare = 0.4;
// Of the time for stages: how long they are measured. What comes later is estimated.
constexpr double kMeasuringShare = 0.7;

// Which siblings become one is decided by stages of the graph before the finishing passes, where merges are rules.
Proposal merge(StrategyContext& context, const Graph& simplified, double share) {
  if (!context.options().use_rules) return context.propose(simplified);
  SiblingMerges merges(context, simplified);
  const TaskGraph tasks = merges.tasks();
  IosOptions options;
  options.max_seconds = context.seconds_of(share);
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

IosResult find_ios_stages(StrategyContext& context, const Proposal& proposal, double share) {
  IosOptions options;
  options.max_seconds = context.seconds_of(share);
  const std::optional<TaskGraph> tasks = context.tasks(proposal.finished);
  if (!tasks) return IosResult();
  const double until = context.share_spent() + kMeasuringShare * share;
  MeasuredStages measured(context, proposal, *tasks, until);
  if (context.properties().can_time_kernels) {
    options.stage_cost = [&](const TaskStreams& streams) { return measured.us(streams); };
  }
  return schedule_ios(*tasks, context.limits(), options);
}

Proposal run_ios(StrategyContext& context, const Graph& simplified) {
  const Proposal plain = context.propose(simplified);
  Incumbent incumbent(context, plain);
  incumbent.try_tuning();
  // Merges may cost more than they should have, and stages take their time: never worse than `list` alone.
  try_list(context, incumbent, plain);
  Proposal proposal = propose_ios(context, simplified, kMergeShare, kStagesShare);
  Schedule schedule = std::move(proposal.schedule);
  proposal.schedule = Schedule();
  if (incumbent.is_new_graph(proposal) && incumbent.has_time()) incumbent.try_candidate(proposal);
  incumbent.try_schedule(proposal, std::move(schedule));
  if (!proposal.steps.empty()) try_list(context, incumbent, proposal);
  incumbent.try_tuning_in_network();
  return incumbent.take();
}

Proposal propose_ios(StrategyContext& context, const Graph& simplified, double merge_share, double stages_share) {
  Proposal proposal = merge(context, simplified, merge_share);
  IosResult result = find_ios_stages(context, proposal, stages_share);
  context.report().candidates += result.num_states;
  proposal.schedule = std::move(result.schedule);
  return proposal;
}

}  // namespace autograph
