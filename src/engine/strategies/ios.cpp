// ios: stages by dynamic programming over endings.
#include "schedule/ios.h"

#include "backends/sim/sim_stage_cost.h"
#include "engine/strategies/strategy.h"

namespace autograph {
namespace {

constexpr double kSearchShare = 0.7;

}  // namespace

Proposal run_ios(StrategyContext& context, const Graph& simplified) {
  Proposal proposal = context.propose(simplified);
  IosOptions options;
  options.max_seconds = kSearchShare * context.options().budget_seconds;
  const TaskGraph tasks = context.tasks(proposal.finished);
  if (const auto& machine = context.device().machine) {
    options.stage_cost = sim_stage_cost(proposal.finished, tasks, *machine);
  }
  IosResult result = schedule_ios(tasks, context.limits(), options);
  context.report().candidates += result.num_states;
  proposal.schedule = std::move(result.schedule);
  return proposal;
}

}  // namespace autograph
