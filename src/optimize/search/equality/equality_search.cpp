#include "optimize/search/equality/equality_search.h"

#include <algorithm>
#include <set>

#include "autograph/op_def.h"
#include "optimize/search/equality/extraction.h"

namespace autograph {
namespace {

// Larger graphs are to be cut into parts.
constexpr size_t kMaxNodes = 400;
// Bounds memory and time: forms of some thousand terms are as many as backtracking's queue has graphs.
constexpr size_t kMaxTerms = 6000;
// Rewrites that are tried before the first extraction, and how many times as many before the next.
constexpr size_t kFirstTries = 16;
constexpr size_t kMoreTries = 2;

bool is_searchable(const Graph& graph) {
  if (graph.num_nodes() > kMaxNodes || !graph.states().empty() || !graph.kept().empty()) return false;
  const std::vector<NodeId> nodes = graph.nodes();
  return std::all_of(nodes.begin(), nodes.end(), [&](NodeId id) { return graph.node(id).op().traits.pure; });
}

// Makes a form by applying the rules that made its terms, in the order in which they were found.
class Derivation {
 public:
  Derivation(RewriteSpace& space, const RuleMatcher& matcher)
      : space_(space), matcher_(matcher), candidate_(std::make_shared<CandidateGraph>(space.start())) {}

  Rewritten run(const std::vector<TermId>& terms) {
    names_ = space_.graph().start();
    for (const size_t rewrite : space_.rewrites_for(terms)) apply(space_.rewrites()[rewrite]);
    return {candidate_, std::move(steps_)};
  }

 private:
  // Where the graph at hand has no such match, it goes without.
  void apply(const FoundRewrite& rewrite) {
    std::vector<NodeId> nodes;
    for (const TermId term : rewrite.matched) nodes.push_back(node_of(term));
    if (!std::all_of(nodes.begin(), nodes.end(), [](NodeId id) { return id.is_valid(); })) return;
    for (const RuleMatch& match : matcher_.find_near(candidate_->graph(), nodes)) {
      if (&match.rule() != rewrite.rule || match.nodes() != nodes) continue;
      RewriteStep step = step_before(candidate_->graph(), match);
      const double before = space_.cost_of(*candidate_);
      RuleEffect effect;
      if (!candidate_->apply(match, &effect)) continue;
      step.gain_us = before - space_.cost_of(*candidate_);
      steps_.push_back(std::move(step));
      space_.name(candidate_->graph(), effect, names_);
      return;
    }
  }

  NodeId node_of(TermId term) const {
    const TermId wanted = space_.graph().find_term(term);
    for (const NodeId id : candidate_->graph().nodes()) {
      if (space_.graph().find_term(names_.terms[id.index]) == wanted) return id;
    }
    return {};
  }

  RewriteSpace& space_;
  const RuleMatcher& matcher_;
  std::shared_ptr<CandidateGraph> candidate_;
  TermNames names_;
  std::vector<RewriteStep> steps_;
};

// The graphs themselves, cheapest first, those that are the same once; the start is among them.
std::vector<Rewritten> derive_best(RewriteSpace& space, const RuleMatcher& matcher, size_t keep) {
  std::vector<Rewritten> found = {{std::make_shared<CandidateGraph>(space.start()), {}}};
  std::set<Hash128> seen = {space.start().score().hash};
  for (const BestForms::Entry& entry : space.best().entries()) {
    Rewritten derived = Derivation(space, matcher).run(entry.terms);
    if (seen.insert(derived.candidate->score().hash).second) found.push_back(std::move(derived));
  }
  std::stable_sort(found.begin() + 1, found.end(), [&](const Rewritten& a, const Rewritten& b) {
    return space.cost_of(*a.candidate) < space.cost_of(*b.candidate);
  });
  if (found.size() > keep) found.resize(keep);
  std::stable_sort(found.begin(), found.end(), [&](const Rewritten& a, const Rewritten& b) {
    return space.cost_of(*a.candidate) < space.cost_of(*b.candidate);
  });
  return found;
}

}  // namespace

std::vector<Rewritten> search_equalities(const CandidateGraph& start, const RuleMatcher& matcher,
                                         const BacktrackingOptions& options) {
  if (!is_searchable(start.graph())) return {{std::make_shared<CandidateGraph>(start), {}}};
  RewriteSpace space(start, matcher, options, kMaxTerms);
  for (size_t tries = kFirstTries; space.explore(tries); tries *= kMoreTries) {
    extract(space);
    // Rewrites that meet in the best of all graphs alone.
    space.explore_form(space.best().entries().front().terms);
  }
  extract(space);
  return derive_best(space, matcher, options.keep);
}

}  // namespace autograph
