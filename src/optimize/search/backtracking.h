// Backtracking search over rules (TASO, SOSP 2019, section 5; AutoGraph, AAAI 2023, with the mixed critical path cost):
// graphs leave a queue cheapest first, every rule is tried on each, and children that cost less than gamma times the
// best join the queue, so that a step that costs something may lead to one that gains more. Gains that do not touch
// each other are also applied together, as one child: a graph of a thousand layers need not leave the queue a thousand
// times. A child is matched again only around what changed; where the sum alone counts, what was tried elsewhere still
// holds. Graphs may also be ranked by what the caller says a whole one takes, such as its schedule.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "optimize/rules/rule.h"
#include "optimize/search/candidate_graph.h"
#include "optimize/search/ledger.h"

namespace autograph {

/// One application of a rule on the way to a candidate.
struct RewriteStep {
  const Rule* rule = nullptr;
  std::vector<NodeId> nodes;              ///< The match, in the graph as it was then.
  std::string where;                      ///< The same in the words of the user.
  double gain_us = 0;                     ///< Of the mixed cost.
  std::vector<std::string> origins = {};  ///< Names of the nodes of the match, each once.
};

/// A graph that the search found and how.
struct Rewritten {
  std::shared_ptr<const CandidateGraph> candidate;
  std::vector<RewriteStep> steps;
};

struct BacktrackingOptions {
  double alpha = 1;
  double gamma = 1.05;
  /// Candidates may cost this more than the best where gamma allows less: a part of a graph is small beside a step that
  /// pays only with the next one.
  double slack_us = 0;
  int64_t max_popped = 2000;  ///< Graphs taken from the queue.
  int64_t max_idle = 500;     ///< The same since the best graph was found.
  size_t keep = 6;            ///< How many of the best to return, the graph at the start among them.
  /// Paper-literal: the best graph changes when a candidate leaves the queue instead of when it joins, and equal costs
  /// count as better.
  bool literal = false;
  /// What a whole graph costs, in place of the mixed cost; null: the mixed cost.
  std::function<double(const CandidateGraph&)> whole_us = nullptr;
  /// By number, the nodes of a graph, which costs `us`, that matches must have one of to be tried; empty: all. Null:
  /// all of all graphs.
  std::function<std::vector<bool>(const CandidateGraph&, double us)> choose_nodes = nullptr;
  /// Which matches are looked at, asked when they are found; null: all.
  std::function<bool(const CandidateGraph&, const RuleMatch&)> may_try = nullptr;
  std::function<bool()> should_stop = nullptr;                 ///< Asked often, in the midst of a graph, too.
  std::function<void(double best_us)> on_candidate = nullptr;  ///< Called for every graph looked at.
  Ledger* ledger = nullptr;                                    ///< Notes what was tried; null: nobody asks.
};

/// The nodes of a match in the words of the user, for RewriteStep::where.
std::string describe_match(const Graph& graph, const RuleMatch& match);

/// What applying `match` will be told as: all but the gain.
RewriteStep step_before(const Graph& before, const RuleMatch& match);

/// The cheapest graphs, best first, with different hashes; never empty. Deterministic as long as nothing stops it.
std::vector<Rewritten> backtrack(const CandidateGraph& start, const RuleMatcher& matcher,
                                 const BacktrackingOptions& options);

/// A graph to which steps of a search were applied once more.
struct Replayed {
  Graph graph;
  std::vector<RewriteStep> steps;  ///< Those that applied, in the words of this graph.
};

/// Applies the steps of a search to a graph that is equal to the one that was searched, id by id, but for names and the
/// elements of weights. Stops before the first step that does not apply.
Replayed replay(const Graph& start, const RuleMatcher& matcher, const std::vector<RewriteStep>& steps);

}  // namespace autograph
