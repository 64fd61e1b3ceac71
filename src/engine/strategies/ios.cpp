// ios: stages by dynamic programming over endings.
#include "schedule/ios.h"

#include "backends/sim/sim_stage_cost.h"
#include "engine/strategies/strategy.h"

namespace autograph {
namespace {

constexpr double kSearchShare = 0.7;

}  // namespace

IosResult find_ios_stages(StrategyContext& context, const Graph& finished, double share) {
  IosOptions options;
  options.max_seconds = share * context.options().budget_seconds;
  const TaskGraph tasks = context.tasks(finished);
  if (const auto& machine = context.device().machine) options.stage_cost = sim_stage_cost(finished, tasks, *machine);
  return schedule_ios(tasks, context.limits(), options);
}

Proposal run_ios(StrategyContext& context, const Graph& simplified) {
  Proposal proposal = context.propose(simplified);
  IosResult result = find_ios_stages(context, proposal.finished, kSearchShare);
  context.report().candidates += result.num_states;
  proposal.schedule = std::move(result.schedule);
  return proposal;
}

}  // namespace autograph
