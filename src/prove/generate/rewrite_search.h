// Does one small graph become another by a few applications of rules? For leaving out rules that follow from others,
// and for telling which generated rules hand-written ones cover.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "optimize/rules/rule.h"

namespace autograph {

/// Hash of what a graph's outputs (in any order) are made of, the same for a + b and b + a.
uint64_t term_hash(const Graph& graph);

/// Limits of a search.
struct RewriteLimits {
  int steps = 2;
  size_t graphs = 60;
};

/// Names of rules that lead from `from` to a graph with the term hash `to`, in order; nothing when none were found.
std::optional<std::vector<std::string>> find_rewrites(const Graph& from, uint64_t to, const RuleMatcher& matcher,
                                                      const RewriteLimits& limits);

}  // namespace autograph
