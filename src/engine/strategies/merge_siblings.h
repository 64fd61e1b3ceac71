// Merges of ios: convolutions or products that read the same input become one and a split.
//
// They are rules of the search, so that they are as sound as these; which sets of siblings become one is what the
// dynamic programming of ios decides (Ding et al., MLSys 2021, "operator merge").
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "engine/strategies/strategy.h"

namespace autograph {

/// For one graph. For one thread.
class SiblingMerges {
 public:
  SiblingMerges(StrategyContext& context, const Graph& simplified);

  /// Microseconds of one node that does the work of all of these, with the split behind it; nothing when they cannot be
  /// merged.
  std::optional<double> merged_us(const std::vector<NodeId>& nodes);
  /// The graph with each of these sets merged, as far as they can be one after the other.
  Rewritten apply(const std::vector<std::vector<NodeId>>& sets) const;
  /// Tasks of the graph, priced as they will be behind the finishing passes.
  TaskGraph tasks();

 private:
  bool merge(CandidateGraph& candidate, std::vector<NodeId> nodes, std::vector<RewriteStep>* steps) const;

  StrategyContext& context_;
  FusedCost cost_;
  std::vector<const Rule*> rules_;
  RuleMatcher matcher_;
  CandidateGraph start_;
  std::map<NodeId, std::vector<NodeId>> siblings_;  // pairs that can be merged
};

}  // namespace autograph
