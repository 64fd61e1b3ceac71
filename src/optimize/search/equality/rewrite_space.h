// What rules make of a graph and of all graphs that are equal to it, as far as the time allows: each rewrite is made
// once, wherever it is found, and what it makes is a term of an equality graph, whatever else was rewritten beside it.
//
// Forms of the graph are taken from a queue, cheapest first, and matched around what is new in them. So that rewrites
// meet which were found apart, each new term is also matched beside the terms that may stand next to it, two at a time.
#pragma once

#include <deque>
#include <optional>
#include <queue>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "optimize/search/backtracking.h"
#include "optimize/search/equality/equality_graph.h"

namespace autograph {

/// A graph with its costs.
struct CostedForm {
  CandidateGraph candidate;
  TermNames names;
  double us = 0;  ///< By what graphs are ranked by.
};

/// A rewrite that told something new.
struct FoundRewrite {
  const Rule* rule = nullptr;
  std::vector<TermId> matched;  ///< By statement.
  std::vector<TermId> inner;    ///< Of formulas.
  std::vector<TermId> added;
  std::vector<TermId> fresh;    ///< Those of them that were not known.
  std::vector<TermId> touched;  ///< Terms at which matches may appear.
  std::vector<TermId> chain;    ///< All that it and the rewrites added that it builds on, its own first.
  std::vector<TermId> form;     ///< The graph behind it, each term after what it reads.
};

/// The cheapest forms that differ.
class BestForms {
 public:
  struct Entry {
    std::vector<TermId> terms;
    double us = 0;
  };
  explicit BestForms(size_t keep) : keep_(keep) {}
  void offer(std::vector<TermId> terms, double us);
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  size_t keep_;
  std::vector<Entry> entries_;  // cheapest first
};

/// For one thread.
class RewriteSpace {
 public:
  /// All must outlive this. Of the options it takes how graphs are ranked, what may be tried, when to stop, and who is
  /// told; `max_terms` bounds the memory.
  RewriteSpace(const CandidateGraph& start, const RuleMatcher& matcher, const BacktrackingOptions& options,
               size_t max_terms);

  /// Tries about so many rewrites; false: there is nothing left to try.
  bool explore(size_t tries);
  /// Tries what matches anywhere in this form, and goes on from there.
  void explore_form(const std::vector<TermId>& terms);

  const EqualityGraph& graph() const { return graph_; }
  const std::deque<FoundRewrite>& rewrites() const { return rewrites_; }
  BestForms& best() { return best_; }
  /// Rewrites that make these terms, those that make what they match, and so on: of several that make a term, the one
  /// that makes the least besides `terms`. Each builds on those before it alone.
  std::set<size_t> rewrites_for(const std::vector<TermId>& terms) const;
  /// Microseconds of a term where it was met first.
  double term_us(TermId term) const { return term_us_[term]; }
  const CandidateGraph& start() const { return start_; }
  const std::vector<TermId>& start_terms() const { return start_terms_; }
  bool should_stop() const { return options_.should_stop && options_.should_stop(); }
  /// Names what a rule made of a graph with these names that is rewritten elsewhere.
  void name(const Graph& graph, const RuleEffect& effect, TermNames& names);
  double cost_of(const CandidateGraph& candidate) const;
  /// The form that EqualityGraph::make() gives, which is among the best from now on if it is one of them. Nothing where
  /// there is none, or it is large.
  std::optional<BestForms::Entry> look_at(std::initializer_list<std::span<const TermId>> wishes);

 private:
  static constexpr size_t kStart = SIZE_MAX;
  // What is needed, and the rewrite that needs it.
  struct Needed {
    TermId term = 0;
    size_t before = kStart;
  };
  struct Waiting {
    double us = 0;
    size_t rewrite = 0;
  };
  struct Later {
    bool operator()(const Waiting& a, const Waiting& b) const {
      return a.us != b.us ? a.us > b.us : a.rewrite > b.rewrite;
    }
  };

  std::optional<GraphForm> make(std::initializer_list<std::span<const TermId>> wishes) const;
  void count();
  void explore_rewrite(size_t index);
  void explore_pairs(const FoundRewrite& rewrite);
  bool explore_pair(const FoundRewrite& rewrite, TermId term, TermId other);
  std::vector<TermId> possible_neighbours(TermId term) const;
  void match_near(CostedForm& form, std::span<const NodeId> nodes);
  void try_match(CostedForm& form, const RuleMatch& match, int64_t occurrence);
  Hash128 key_of(const CostedForm& form, const RuleMatch& match, int64_t occurrence) const;
  std::vector<TermId> seen_by(const CostedForm& form, const RuleMatch& match) const;
  std::optional<FoundRewrite> learn(const CostedForm& form, const RuleMatch& match, const RuleEffect& effect);
  std::vector<TermId> terms_at(const TermNames& names, std::span<const NodeId> nodes) const;
  std::optional<size_t> maker_for(const Needed& needed, const std::vector<TermId>& terms,
                                  const std::set<size_t>& chosen) const;
  const std::vector<TermId>& form_with(TermId term) const;
  std::vector<TermId> chain_of(const std::vector<TermId>& terms) const;
  CostedForm with_costs(GraphForm form) const;
  bool is_full() const { return graph_.num_terms() >= max_terms_ || should_stop(); }

  const CandidateGraph& start_;
  const RuleMatcher& matcher_;
  const BacktrackingOptions& options_;
  size_t max_terms_;
  size_t max_nodes_;
  EqualityGraph graph_;
  std::vector<TermId> start_terms_;
  std::deque<FoundRewrite> rewrites_;
  std::vector<std::vector<size_t>> makers_;  // by term: the rewrites that add it, in order; none at the start
  std::vector<double> term_us_;              // by term
  std::priority_queue<Waiting, std::vector<Waiting>, Later> queue_;
  std::unordered_set<Hash128> tried_;          // rules with the terms of the match
  std::unordered_set<Hash128> pairs_;          // forms that were matched for two terms
  std::unordered_map<Hash128, double> costs_;  // of forms that were looked at
  size_t num_tries_ = 0;
  BestForms best_;
};

}  // namespace autograph
