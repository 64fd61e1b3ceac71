// Of what use rules of a file are on a graph: what a search of the whole graph gains with them and without.
#include <algorithm>
#include <map>

#include "autograph/search.h"
#include "engine/prepare_graph.h"
#include "engine/strategies/strategy.h"

namespace autograph {
namespace {

// Gains below this share of the cost are rounding.
constexpr double kMinGain = 1e-6;
// Of the budget: until when the graph is searched without the rules.
constexpr double kWithoutShare = 0.5;

Rewritten best_of(StrategyContext& context, const Graph& simplified, const RuleMatcher& matcher, double until) {
  FusedCost cost(context.cost());
  const CandidateGraph start(simplified, cost);
  BacktrackingOptions how{.alpha = 0, .keep = 1};
  how.gamma = context.options().gamma;
  how.max_popped = context.options().max_candidates;
  how.max_idle = 30;
  how.should_stop = [&] { return context.is_over(until); };
  return backtrack(start, matcher, how).front();
}

}  // namespace

std::vector<RuleUse> rule_use(const Graph& graph, const CompileOptions& options, const SearchOptions& search) {
  SearchReport report;
  const Device& device = get_device(options.device, options.precision);
  StrategyContext context(device, options, search, report);
  context.set_measuring(false);
  const Graph simplified = prepare_graph(graph, device, options, PassHalf::simplify);
  std::vector<const Rule*> added;
  for (size_t i = 0; search.rules && i < search.rules->size(); ++i) added.push_back(&search.rules->rule(i));
  std::map<std::string_view, RuleUse> uses;
  for (const RuleMatch& match : RuleMatcher(added).find_all(simplified)) {
    RuleUse& use = uses[match.rule().name];
    use.rule = match.rule().name;
    ++use.matches;
  }
  if (!uses.empty()) {
    // Rules that match nowhere only take time.
    std::vector<const Rule*> all = rules_for_search(options.exact);
    const RuleMatcher without(all);
    for (const Rule* rule : added) {
      if (uses.contains(rule->name)) all.push_back(rule);
    }
    const double without_us = best_of(context, simplified, without, kWithoutShare).candidate->score().sum_us;
    const Rewritten with = best_of(context, simplified, RuleMatcher(all), 1);
    const double gain_us = without_us - with.candidate->score().sum_us;
    for (const RewriteStep& step : with.steps) {
      const auto use = uses.find(step.rule->name);
      if (use == uses.end() || gain_us <= kMinGain * without_us) continue;
      ++use->second.applied;
      use->second.gain_us = gain_us;
    }
  }
  std::vector<RuleUse> result;
  for (auto& [name, use] : uses) result.push_back(std::move(use));
  return result;
}

}  // namespace autograph
