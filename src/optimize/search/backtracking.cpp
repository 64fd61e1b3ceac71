#include "optimize/search/backtracking.h"

#include <algorithm>
#include <queue>
#include <set>
#include <unordered_set>

#include "autograph/op_def.h"
#include "optimize/rules/pattern/ancestry.h"

namespace autograph {
namespace {

// No candidate has more nodes than this times those at the start, and some: rules that expand could go on for ever.
constexpr size_t kMaxGrowth = 2;
constexpr size_t kSmallGraph = 8;
// Gains below this share of the cost are rounding.
constexpr double kMinGain = 1e-6;

// Graphs that were taken from the queue stay in memory: no more than these nodes of them together.
constexpr size_t kMaxHeldNodes = 1'000'000;
// The time is looked at once in so many rewrites that are tried; after each where a whole graph is looked at.
constexpr size_t kTriesPerLook = 16;

// What a match would change, where that holds whatever happens elsewhere in the graph.
struct Delta {
  double us = 0;
  Hash128 hash;
  int64_t nodes = 0;
  bool applies = false;
};

// What a graph would be behind a match.
struct Tried {
  GraphScore score;
  double us = 0;
};

// A match of an expanded graph, and what trying it told.
struct Move {
  RuleMatch match;
  std::optional<Delta> delta = {};  // unset: not tried, or what it tells depends on the whole graph
};

// A graph taken from the queue, with the way that led to it.
struct Expanded {
  CandidateGraph candidate;
  std::vector<Move> moves;
  std::shared_ptr<const Expanded> parent;
  std::vector<uint32_t> via;  // moves of the parent, in the order in which they were made
};

// A graph in the queue: what moves would make of an expanded one.
struct Entry {
  std::shared_ptr<const Expanded> parent;  // null: the start
  std::vector<uint32_t> moves;
  double us = 0;
  Hash128 hash;
  uint64_t number = 0;  // ties: first come, first served
};

struct Later {
  bool operator()(const Entry& a, const Entry& b) const { return a.us != b.us ? a.us > b.us : a.number > b.number; }
};

// Nodes that are marked, by number.
class NodeMarks {
 public:
  void add(std::span<const NodeId> nodes) {
    for (const NodeId id : nodes) {
      if (id.index >= marks_.size()) marks_.resize(id.index + 1, 0);
      marks_[id.index] = 1;
    }
  }
  bool has(NodeId id) const { return id.index < marks_.size() && marks_[id.index]; }
  bool has_any(std::span<const NodeId> nodes) const {
    return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) { return has(id); });
  }

 private:
  std::vector<uint8_t> marks_;
};

// `nodes` and all that read or make a value that one of them reads or makes.
std::vector<NodeId> with_neighbours(const Graph& graph, std::span<const NodeId> nodes) {
  NodeMarks seen;
  std::vector<NodeId> result;
  const auto add = [&](NodeId id) {
    if (!id.is_valid() || seen.has(id)) return;
    seen.add({&id, 1});
    result.push_back(id);
  };
  std::unordered_set<uint32_t> values;  // a weight that all layers share is looked at once
  const auto add_around = [&](ValueId v) {
    if (!v.is_valid() || !values.insert(v.index).second) return;
    add(graph.value(v).producer());
    for (const Use& use : graph.value(v).uses()) add(use.node);
  };
  for (const NodeId id : nodes) {
    add(id);
    for (const ValueId v : graph.node(id).inputs()) add_around(v);
    for (const ValueId v : graph.node(id).outputs()) add_around(v);
  }
  return result;
}

class Search {
 public:
  Search(const RuleMatcher& matcher, const BacktrackingOptions& options)
      : matcher_(matcher),
        options_(options),
        is_sum_alone_(options.alpha == 0 && !options.whole_us),
        has_paths_(options.alpha != 0 && !options.whole_us) {}

  std::vector<Rewritten> run(const CandidateGraph& start) {
    const size_t num_nodes = start.graph().num_nodes();
    max_nodes_ = kMaxGrowth * num_nodes + kSmallGraph;
    const auto max_popped =
        std::min<int64_t>(options_.max_popped, 1 + static_cast<int64_t>(kMaxHeldNodes / (num_nodes + 1)));
    start_ = &start;
    const double us = cost_of(start);
    best_us_ = us;
    seen_.insert(start.score().hash);
    offer({nullptr, {}, us, start.score().hash, 0});
    queue_.push(kept_.front());
    int64_t idle = 0;
    for (int64_t popped = 0; !queue_.empty() && popped < max_popped && idle < options_.max_idle; ++popped) {
      if (should_stop()) break;
      const Entry entry = queue_.top();
      queue_.pop();
      if (options_.literal && entry.us <= best_us_) best_us_ = entry.us;
      if (entry.us > limit_us()) break;  // the queue is sorted: all others cost more
      const double before = best_us_;
      expand(entry);
      idle = best_us_ < before ? 0 : idle + 1;
    }
    std::vector<Rewritten> results;
    for (const Entry& entry : kept_) results.push_back(result_of(entry));
    return results;
  }

 private:
  std::string_view objective() const {
    return options_.whole_us ? "schedule" : has_paths_ ? "mixed cost" : "sum of costs";
  }
  bool should_stop() const { return options_.should_stop && options_.should_stop(); }
  bool is_time_to_look(size_t tried) const { return options_.whole_us || tried % kTriesPerLook == kTriesPerLook - 1; }

  double cost_of(const CandidateGraph& candidate) const {
    return options_.whole_us ? options_.whole_us(candidate) : candidate.score().mixed_us(options_.alpha);
  }

  void expand(const Entry& entry) {
    const auto expanded = make(entry);
    if (!expanded) return;
    const AncestryScope scope(expanded->candidate.graph());
    ancestry_of(expanded->candidate.graph());        // as it is before anything is tried
    std::vector<std::pair<double, uint32_t>> gains;  // and the move, for all that gain
    const std::vector<bool> chosen =
        options_.choose_nodes ? options_.choose_nodes(expanded->candidate, entry.us) : std::vector<bool>();
    for (uint32_t m = 0; m < expanded->moves.size(); ++m) {
      if (is_time_to_look(m) && should_stop()) break;
      if (!chosen.empty() && !has_any(chosen, expanded->moves[m].match)) continue;
      const std::optional<Tried> tried = try_move(*expanded, expanded->moves[m]);
      if (!tried) continue;
      if (options_.on_candidate) options_.on_candidate(best_us_);
      const double us = tried->us;
      const bool is_affordable = us < limit_us() && tried->score.num_nodes <= max_nodes_;
      if (options_.ledger) {
        options_.ledger->note(expanded->candidate.graph(), expanded->moves[m].match, objective(), entry.us - us,
                              is_affordable);
      }
      if (entry.us - us > kMinGain * entry.us / static_cast<double>(expanded->moves.size())) {
        gains.emplace_back(entry.us - us, m);
      }
      if (is_affordable) enqueue({expanded, {m}, us, tried->score.hash, 0});
    }
    if (!options_.literal) enqueue_all_gains(expanded, std::move(gains));
  }

  static bool has_any(const std::vector<bool>& chosen, const RuleMatch& match) {
    const auto is_chosen = [&](NodeId id) { return chosen[id.index]; };
    return std::any_of(match.nodes().begin(), match.nodes().end(), is_chosen) ||
           std::any_of(match.inner().begin(), match.inner().end(), is_chosen);
  }

  // The graph with all moves that gain and do not touch each other, best first.
  void enqueue_all_gains(const std::shared_ptr<Expanded>& expanded, std::vector<std::pair<double, uint32_t>> gains) {
    if (gains.size() < 2) return;
    std::stable_sort(gains.begin(), gains.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    CandidateGraph together = expanded->candidate;
    NodeMarks changed;
    std::vector<uint32_t> moves;
    double us = cost_of(together);
    for (const auto& [gain, m] : gains) {
      if (options_.whole_us && should_stop()) break;
      const RuleMatch& match = expanded->moves[m].match;
      if (changed.has_any(match.nodes()) || changed.has_any(match.inner())) continue;
      const std::optional<Tried> tried = try_on(together, match);
      if (!tried || tried->us >= us) continue;
      RuleEffect effect;
      if (!together.apply(match, &effect)) continue;
      us = tried->us;
      changed.add(match.nodes());
      changed.add(effect.touched);
      moves.push_back(m);
    }
    if (moves.size() < 2) return;
    enqueue({expanded, std::move(moves), us, together.score().hash, 0});
  }

  void enqueue(Entry child) {
    if (!seen_.insert(child.hash).second) return;
    child.number = ++number_;
    queue_.push(child);
    offer(child);
    if (!options_.literal && child.us < best_us_ * (1 - kMinGain)) best_us_ = child.us;
  }

  // What a match would make of a graph.
  std::optional<Tried> try_on(CandidateGraph& candidate, const RuleMatch& match, bool skips_seen = false) const {
    if (!options_.whole_us) {
      const std::optional<GraphScore> score = candidate.try_rule(match);
      return score ? std::optional(Tried{*score, score->mixed_us(options_.alpha)}) : std::nullopt;
    }
    std::optional<Tried> tried;
    candidate.tentatively([&] {
      if (!candidate.apply(match) || (skips_seen && seen_.contains(candidate.score().hash))) return;
      tried = Tried{candidate.score(), options_.whole_us(candidate)};
    });
    return tried;
  }

  // What a move would make of the graph; it is tried only once where the sum alone counts.
  std::optional<Tried> try_move(Expanded& expanded, Move& move) const {
    CandidateGraph& candidate = expanded.candidate;
    if (!is_sum_alone_) return try_on(candidate, move.match, true);
    const GraphScore& now = candidate.score();
    if (!move.delta) {
      move.delta = Delta();
      if (const std::optional<GraphScore> score = candidate.try_rule(move.match)) {
        move.delta = {score->sum_us - now.sum_us, score->hash - now.hash,
                      static_cast<int64_t>(score->num_nodes) - static_cast<int64_t>(now.num_nodes), true};
      }
    }
    if (!move.delta->applies) return std::nullopt;
    GraphScore after = now;
    after.sum_us += move.delta->us;
    after.hash = after.hash + move.delta->hash;
    after.num_nodes = static_cast<size_t>(static_cast<int64_t>(now.num_nodes) + move.delta->nodes);
    return Tried{after, after.sum_us};
  }

  // What a candidate may cost.
  double limit_us() const { return std::max(options_.gamma * best_us_, best_us_ + options_.slack_us); }

  // Matches refer to the graph they were found in: an expanded graph stays where it is.
  std::shared_ptr<Expanded> make(const Entry& entry) const {
    if (!entry.parent) {
      auto first = std::make_shared<Expanded>(Expanded{*start_, {}, nullptr, {}});
      if (!has_paths_) first->candidate.forget_paths();
      add_moves(*first, matcher_.find_all(first->candidate.graph(), {options_.should_stop}));
      return first;
    }
    auto child = std::make_shared<Expanded>(Expanded{entry.parent->candidate, {}, entry.parent, entry.moves});
    NodeMarks changed;
    std::vector<NodeId> touched;
    for (const uint32_t m : entry.moves) {
      RuleEffect effect;
      if (!child->candidate.apply(entry.parent->moves[m].match, &effect)) return nullptr;
      changed.add(effect.removed);
      changed.add(effect.touched);
      touched.insert(touched.end(), effect.touched.begin(), effect.touched.end());
    }
    find_moves(*child, changed, std::move(touched));
    return child;
  }

  // Those of the parent that nothing has touched, and what is found around the changes. A move changes the costs of
  // nodes two steps away at most: one that is no nearer to a change would tell what it told the parent.
  void find_moves(Expanded& child, const NodeMarks& changed, std::vector<NodeId> touched) const {
    const Graph& graph = child.candidate.graph();
    std::erase_if(touched, [&](NodeId id) { return !graph.is_live(id); });
    NodeMarks near;
    if (is_sum_alone_) near.add(with_neighbours(graph, with_neighbours(graph, touched)));
    for (const Move& move : child.parent->moves) {
      if (changed.has_any(move.match.nodes()) || changed.has_any(move.match.inner())) continue;
      child.moves.push_back(move);
      if (near.has_any(move.match.nodes())) child.moves.back().delta.reset();
    }
    add_moves(child, matcher_.find_near(graph, touched, {options_.should_stop}));
  }

  void add_moves(Expanded& expanded, std::vector<RuleMatch> matches) const {
    for (RuleMatch& match : matches) {
      if (options_.may_try && !options_.may_try(expanded.candidate, match)) continue;
      expanded.moves.push_back({std::move(match)});
    }
  }

  // Keeps the best; the start is always among them.
  void offer(const Entry& entry) {
    const auto at =
        std::upper_bound(kept_.begin(), kept_.end(), entry, [](const Entry& a, const Entry& b) { return a.us < b.us; });
    kept_.insert(at, entry);
    if (kept_.size() <= options_.keep) return;
    for (size_t i = kept_.size(); i-- > 0;) {
      if (!kept_[i].parent) continue;
      kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }

  // The moves that led to a graph, made once more: what each gained is told by the graphs before and after it.
  Rewritten result_of(const Entry& entry) const {
    std::vector<const RuleMatch*> way;  // last one first
    for (auto m = entry.moves.rbegin(); m != entry.moves.rend(); ++m) way.push_back(&entry.parent->moves[*m].match);
    for (const Expanded* at = entry.parent.get(); at && at->parent; at = at->parent.get()) {
      for (auto m = at->via.rbegin(); m != at->via.rend(); ++m) way.push_back(&at->parent->moves[*m].match);
    }
    auto candidate = std::make_shared<CandidateGraph>(*start_);
    Rewritten result{candidate, {}};
    if (!has_paths_) candidate->forget_paths();
    for (auto match = way.rbegin(); match != way.rend(); ++match) {
      RewriteStep step = step_before(candidate->graph(), **match);
      const double before = cost_of(*candidate);
      if (!candidate->apply(**match)) break;
      step.gain_us = before - cost_of(*candidate);
      result.steps.push_back(std::move(step));
    }
    candidate->find_paths();
    return result;
  }

  const RuleMatcher& matcher_;
  const BacktrackingOptions& options_;
  const bool is_sum_alone_;  // alpha is 0: what a move gains depends on its neighbourhood alone
  const bool has_paths_;     // the critical path counts
  const CandidateGraph* start_ = nullptr;
  size_t max_nodes_ = 0;
  double best_us_ = 0;
  uint64_t number_ = 0;
  std::set<Hash128> seen_;
  std::priority_queue<Entry, std::vector<Entry>, Later> queue_;
  std::vector<Entry> kept_;  // sorted by cost
};

}  // namespace

std::string describe_match(const Graph& graph, const RuleMatch& match) {
  std::string text;
  for (const NodeId id : match.nodes()) {
    const Node& node = graph.node(id);
    const std::string name = node.provenance().empty() ? std::string(node.op().name) : node.provenance().to_string();
    text += (text.empty() ? "" : " | ") + name;
  }
  return text;
}

RewriteStep step_before(const Graph& before, const RuleMatch& match) {
  return {&match.rule(), match.nodes(), describe_match(before, match), 0, origins_of(before, match.nodes())};
}

std::vector<Rewritten> backtrack(const CandidateGraph& start, const RuleMatcher& matcher,
                                 const BacktrackingOptions& options) {
  return Search(matcher, options).run(start);
}

Replayed replay(const Graph& start, const RuleMatcher& matcher, const std::vector<RewriteStep>& steps) {
  Replayed result{start, {}};
  for (const RewriteStep& step : steps) {
    const std::vector<RuleMatch> matches = matcher.find_near(result.graph, step.nodes);
    const auto same = std::find_if(matches.begin(), matches.end(), [&](const RuleMatch& match) {
      return &match.rule() == step.rule && match.nodes() == step.nodes;
    });
    if (same == matches.end()) break;
    RewriteStep again = step_before(result.graph, *same);
    again.gain_us = step.gain_us;
    if (!apply_rule(result.graph, *same)) break;
    result.steps.push_back(std::move(again));
  }
  return result;
}

}  // namespace autograph
