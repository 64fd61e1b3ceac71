// Searching the parts of a graph: equal ones once, in whatever round and however often the graph repeats them.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/strategies/strategy.h"
#include "optimize/search/stitch.h"

namespace autograph {

/// For one thread, as StrategyContext.
class PartSearch {
 public:
  /// Both must outlive this.
  PartSearch(StrategyContext& context, FusedCost& cost) : context_(context), cost_(cost) {}

  /// How much a part may cost on the way to a gain, and how long all of them may take.
  struct Limits {
    double alpha = 1;
    double slack_us = 0;   ///< What a graph may cost more than the best, at most; 0: as gamma says.
    double shown_us = 0;   ///< Of the best graph so far, for progress.
    double until = 1;      ///< A part of the budget.
    double cut_until = 1;  ///< The same of cutting out parts; of a large graph there are tens of thousands.
  };
  /// All intervals of `parts` with what was found for them; empty where the time was over before all were cut out.
  std::vector<IntervalOptions> run(const Graph& graph, const Partition& parts, const Limits& limits);

 private:
  std::shared_ptr<const PartOptions> search(std::shared_ptr<const PartGraph> part, const Limits& limits, double until);
  bool is_asked_about(const PartGraph& part);

  StrategyContext& context_;
  FusedCost& cost_;
  std::map<Hash128, std::shared_ptr<const PartOptions>> known_;
};

}  // namespace autograph
