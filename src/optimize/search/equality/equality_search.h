// Searching a part by an equality graph: rewrites are found once and for all graphs that they fit in, then the cheapest
// graph is chosen among all that they make together. Backtracking walks from graph to graph, and meets independent
// rewrites in every combination that it can afford; a step that costs much and pays only with others is behind its
// limit. Here it is a term as any other.
#pragma once

#include "optimize/search/backtracking.h"

namespace autograph {

/// What backtrack() promises, by another way: the cheapest graphs, best first, with different hashes, the start among
/// them. Of the options gamma, slack_us, max_popped, max_idle, literal and choose_nodes mean nothing here. Every graph
/// is made from the start by applying rules to it, one after the other. Graphs of more than a few hundred nodes, with
/// states, or with nodes that do anything besides their outputs, come back as they are.
std::vector<Rewritten> search_equalities(const CandidateGraph& start, const RuleMatcher& matcher,
                                         const BacktrackingOptions& options);

}  // namespace autograph
