#include "optimize/search/equality/rewrite_space.h"

#include <algorithm>
#include <map>

#include "base/hash.h"

namespace autograph {
namespace {

// Forms have no more nodes than backtracking's graphs: twice those at the start, and some.
constexpr size_t kMaxGrowth = 2;
constexpr size_t kSmallGraph = 8;
// Terms beside which the new ones of a rewrite are matched.
constexpr size_t kMaxPairs = 48;
// What the ledger calls gains of rewrites that are tried here.
constexpr std::string_view kObjective = "equal graphs";

Hash128 hash_of_set(std::vector<TermId> terms) {
  std::sort(terms.begin(), terms.end());
  Hasher hasher;
  for (const TermId term : terms) hasher.add(static_cast<int64_t>(term));
  return hasher.finish();
}

bool contains(const std::vector<TermId>& list, TermId term) {
  return std::find(list.begin(), list.end(), term) != list.end();
}

NodeId node_of(const TermNames& names, TermId term) {
  const auto at = std::find(names.terms.begin(), names.terms.end(), term);
  return at == names.terms.end() ? NodeId{} : NodeId{static_cast<uint32_t>(at - names.terms.begin())};
}

}  // namespace

void BestForms::offer(std::vector<TermId> terms, double us) {
  if (entries_.size() >= keep_ && us >= entries_.back().us) return;
  const Hash128 hash = hash_of_set(terms);
  const auto is_same = [&](const Entry& entry) { return hash_of_set(entry.terms) == hash; };
  if (std::any_of(entries_.begin(), entries_.end(), is_same)) return;
  const auto at =
      std::upper_bound(entries_.begin(), entries_.end(), us, [](double x, const Entry& entry) { return x < entry.us; });
  entries_.insert(at, {std::move(terms), us});
  if (entries_.size() > keep_) entries_.pop_back();
}

RewriteSpace::RewriteSpace(const CandidateGraph& start, const RuleMatcher& matcher, const BacktrackingOptions& options,
                           size_t max_terms)
    : start_(start),
      matcher_(matcher),
      options_(options),
      max_terms_(max_terms),
      max_nodes_(kMaxGrowth * start.graph().num_nodes() + kSmallGraph),
      graph_(start.graph()),
      best_(kMaxGrowth * options.keep) {
  for (const NodeId id : start.graph().topological_order()) {
    const TermId term = graph_.start().terms[id.index];
    start_terms_.push_back(term);
    term_us_.resize(graph_.num_terms(), 0);
    term_us_[term] = start.node_us(id);
  }
  makers_.resize(graph_.num_terms());
  best_.offer(start_terms_, cost_of(start));
  queue_.push({best_.entries().front().us, kStart});
}

double RewriteSpace::cost_of(const CandidateGraph& candidate) const {
  return options_.whole_us ? options_.whole_us(candidate) : candidate.score().mixed_us(options_.alpha);
}

// One that was chosen already, or the one that adds the fewest terms besides `terms`.
std::optional<size_t> RewriteSpace::maker_for(const Needed& needed, const std::vector<TermId>& terms,
                                              const std::set<size_t>& chosen) const {
  std::optional<size_t> best;
  std::ptrdiff_t least = 0;
  for (const size_t rewrite : makers_[graph_.find_term(needed.term)]) {
    if (rewrite >= needed.before) break;
    if (chosen.contains(rewrite)) return rewrite;
    const std::vector<TermId>& added = rewrites_[rewrite].added;
    const auto besides = std::count_if(added.begin(), added.end(), [&](TermId t) { return !contains(terms, t); });
    if (best && besides >= least) continue;
    best = rewrite;
    least = besides;
  }
  return best;
}

std::set<size_t> RewriteSpace::rewrites_for(const std::vector<TermId>& terms) const {
  std::set<size_t> chosen;
  std::vector<Needed> open;
  const auto need = [&](const std::vector<TermId>& list, size_t before) {
    for (const TermId term : list) open.push_back({term, before});
  };
  need(terms, kStart);
  while (!open.empty()) {
    const std::optional<size_t> maker = maker_for(open.back(), terms, chosen);
    open.pop_back();
    if (!maker || !chosen.insert(*maker).second) continue;
    need(rewrites_[*maker].matched, *maker);
    need(rewrites_[*maker].inner, *maker);
  }
  return chosen;
}

std::vector<TermId> RewriteSpace::chain_of(const std::vector<TermId>& terms) const {
  const std::set<size_t> rewrites = rewrites_for(terms);
  std::vector<TermId> chain;
  for (auto rewrite = rewrites.rbegin(); rewrite != rewrites.rend(); ++rewrite) {
    chain.insert(chain.end(), rewrites_[*rewrite].added.begin(), rewrites_[*rewrite].added.end());
  }
  return chain;
}

const std::vector<TermId>& RewriteSpace::form_with(TermId term) const {
  return makers_[term].empty() ? start_terms_ : rewrites_[makers_[term].front()].form;
}

void RewriteSpace::name(const Graph& graph, const RuleEffect& effect, TermNames& names) {
  graph_.learn(graph, effect, names);
  makers_.resize(graph_.num_terms());
  term_us_.resize(graph_.num_terms(), 0);
}

void RewriteSpace::count() {
  ++num_tries_;
  if (options_.on_candidate) options_.on_candidate(best_.entries().front().us);
}

std::optional<GraphForm> RewriteSpace::make(std::initializer_list<std::span<const TermId>> wishes) const {
  std::optional<GraphForm> form = graph_.make({wishes.begin(), wishes.size()});
  return form && form->graph.num_nodes() <= max_nodes_ ? std::move(form) : std::nullopt;
}

std::optional<BestForms::Entry> RewriteSpace::look_at(std::initializer_list<std::span<const TermId>> wishes) {
  std::optional<GraphForm> form = make(wishes);
  if (!form) return std::nullopt;
  BestForms::Entry entry{terms_at(form->names, form->graph.topological_order()), 0};
  const auto [known, is_new] = costs_.try_emplace(hash_of_set(entry.terms), 0);
  if (is_new) {
    known->second = with_costs(std::move(*form)).us;
    count();
    best_.offer(entry.terms, known->second);
  }
  entry.us = known->second;
  return entry;
}

CostedForm RewriteSpace::with_costs(GraphForm form) const {
  CostedForm result{CandidateGraph(std::move(form.graph), start_.cost()), std::move(form.names)};
  result.us = cost_of(result.candidate);
  return result;
}

bool RewriteSpace::explore(size_t tries) {
  const size_t end = num_tries_ + tries;
  while (!queue_.empty() && num_tries_ < end && !is_full()) {
    const size_t next = queue_.top().rewrite;
    queue_.pop();
    next == kStart ? explore_form(start_terms_) : explore_rewrite(next);
  }
  return !queue_.empty() && !is_full();
}

void RewriteSpace::explore_form(const std::vector<TermId>& terms) {
  std::optional<GraphForm> form = make({terms, start_terms_});
  if (!form) return;
  CostedForm costed = with_costs(std::move(*form));
  match_near(costed, costed.candidate.graph().nodes());
}

void RewriteSpace::explore_rewrite(size_t index) {
  const FoundRewrite& rewrite = rewrites_[index];
  std::optional<GraphForm> form = make({rewrite.form, start_terms_});
  if (!form) return;
  std::vector<NodeId> near;
  for (const TermId term : rewrite.touched) {
    const NodeId node = node_of(form->names, graph_.find_term(term));
    if (node.is_valid()) near.push_back(node);
  }
  CostedForm costed = with_costs(std::move(*form));
  match_near(costed, near);
  explore_pairs(rewrite);
}

// Terms that make what a term reads, that read what it makes, or that read what it reads.
std::vector<TermId> RewriteSpace::possible_neighbours(TermId term) const {
  std::vector<TermId> found;
  const auto add = [&](const std::vector<TermId>& terms) {
    for (const TermId other : terms) {
      if (other != term && !contains(found, other)) found.push_back(other);
    }
  };
  for (const ClassId output : graph_.term(term).outputs) add(graph_.readers(output));
  for (const ClassId input : graph_.term(term).inputs) {
    if (input == kNoTerm) continue;
    add(graph_.makers(input));
    add(graph_.readers(input));
  }
  return found;
}

void RewriteSpace::explore_pairs(const FoundRewrite& rewrite) {
  size_t num_pairs = 0;
  for (const TermId fresh : rewrite.fresh) {
    const TermId term = graph_.find_term(fresh);
    for (const TermId other : possible_neighbours(term)) {
      if (is_full()) return;
      if (contains(rewrite.form, other)) continue;
      if (explore_pair(rewrite, term, other) && ++num_pairs == kMaxPairs) return;
    }
  }
}

// False: no form that is new has both.
bool RewriteSpace::explore_pair(const FoundRewrite& rewrite, TermId term, TermId other) {
  const TermId both[] = {other, term};
  const std::vector<TermId> chain = chain_of({other});
  std::optional<GraphForm> form = make({both, chain, rewrite.form, form_with(other), start_terms_});
  if (!form) return false;
  const NodeId node = node_of(form->names, other);
  if (!node.is_valid() || !node_of(form->names, term).is_valid()) return false;
  if (!pairs_.insert(hash_of_set(form->names.terms)).second) return false;
  CostedForm costed = with_costs(std::move(*form));
  match_near(costed, {&node, 1});
  return true;
}

std::vector<TermId> RewriteSpace::terms_at(const TermNames& names, std::span<const NodeId> nodes) const {
  std::vector<TermId> terms;
  for (const NodeId node : nodes) terms.push_back(graph_.find_term(names.terms[node.index]));
  return terms;
}

void RewriteSpace::match_near(CostedForm& form, std::span<const NodeId> nodes) {
  const std::vector<RuleMatch> matches =
      matcher_.find_near(form.candidate.graph(), nodes, {.should_stop = options_.should_stop});
  // The same nodes may match in ways that give different results.
  std::map<Hash128, int64_t> occurrences;
  for (const RuleMatch& match : matches) {
    if (is_full()) return;
    Hasher key;
    key.add(match.rule().name);
    for (const NodeId node : match.nodes()) key.add(static_cast<int64_t>(node.index));
    try_match(form, match, occurrences[key.finish()]++);
  }
}

// What a rule may have looked at beside the match: everything, or the other readers of what it reads and makes. Rules
// that take all of a kind make something else where there are others.
std::vector<TermId> RewriteSpace::seen_by(const CostedForm& form, const RuleMatch& match) const {
  const Graph& graph = form.candidate.graph();
  if (!match.rule().build) return {};
  if (match.rule().looks_around) return terms_at(form.names, graph.nodes());
  std::vector<NodeId> readers;
  const auto add_readers = [&](const std::vector<ValueId>& values) {
    for (const ValueId v : values) {
      if (!v.is_valid()) continue;
      for (const Use& use : graph.value(v).uses()) readers.push_back(use.node);
    }
  };
  for (const NodeId node : match.nodes()) {
    add_readers(graph.node(node).inputs());
    add_readers(graph.node(node).outputs());
  }
  return terms_at(form.names, readers);
}

Hash128 RewriteSpace::key_of(const CostedForm& form, const RuleMatch& match, int64_t occurrence) const {
  Hasher key;
  key.add(match.rule().name).add(occurrence).add(hash_of_set(seen_by(form, match)));
  for (const TermId term : terms_at(form.names, match.nodes())) key.add(static_cast<int64_t>(term));
  for (const TermId term : terms_at(form.names, match.inner())) key.add(static_cast<int64_t>(term));
  return key.finish();
}

void RewriteSpace::try_match(CostedForm& form, const RuleMatch& match, int64_t occurrence) {
  if (!tried_.insert(key_of(form, match, occurrence)).second) return;
  CandidateGraph& candidate = form.candidate;
  if (options_.may_try && !options_.may_try(candidate, match)) return;
  std::optional<double> us;
  candidate.tentatively([&] {
    RuleEffect effect;
    if (!candidate.apply(match, &effect)) return;
    us = cost_of(candidate);
    count();
    const bool is_small = candidate.graph().num_nodes() <= max_nodes_;
    std::optional<FoundRewrite> found = is_small ? learn(form, match, effect) : std::nullopt;
    if (!found) return;
    costs_.emplace(hash_of_set(found->form), *us);
    best_.offer(found->form, *us);
    for (const TermId term : found->added) {
      if (!contains(start_terms_, term)) makers_[term].push_back(rewrites_.size());
    }
    queue_.push({*us, rewrites_.size()});
    rewrites_.push_back(std::move(*found));
  });
  if (us && options_.ledger) options_.ledger->note(candidate.graph(), match, kObjective, form.us - *us, true);
}

// Nothing where all of it was known.
std::optional<FoundRewrite> RewriteSpace::learn(const CostedForm& form, const RuleMatch& match,
                                                const RuleEffect& effect) {
  const Graph& graph = form.candidate.graph();
  FoundRewrite found;
  found.rule = &match.rule();
  found.matched = terms_at(form.names, match.nodes());
  found.inner = terms_at(form.names, match.inner());
  TermNames names = form.names;
  const size_t version = graph_.version();
  const size_t num_known = graph_.num_terms();
  const bool is_understood = graph_.learn(graph, effect, names);
  makers_.resize(graph_.num_terms());
  term_us_.resize(graph_.num_terms(), 0);
  if (!is_understood || graph_.version() == version) return std::nullopt;
  for (const NodeId id : effect.added) {
    if (!graph.is_live(id)) continue;
    const TermId term = names.terms[id.index];
    found.added.push_back(term);
    if (term < num_known) continue;
    found.fresh.push_back(term);
    term_us_[term] = form.candidate.node_us(id);
  }
  found.chain = found.added;
  for (const std::vector<TermId>& matched : {found.matched, found.inner}) {
    const std::vector<TermId> before = chain_of(matched);
    found.chain.insert(found.chain.end(), before.begin(), before.end());
  }
  found.touched = terms_at(names, effect.touched);
  found.form = terms_at(names, graph.topological_order());
  if (contains(found.form, kNoTerm)) return std::nullopt;
  return found;
}

}  // namespace autograph
