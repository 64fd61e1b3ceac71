#include "optimize/search/backtracking.h"

#include <algorithm>
#include <queue>
#include <set>

#include "autograph/op_def.h"

namespace autograph {
namespace {

// No candidate has more nodes than this times those at the start, and some: rules that expand could go on for ever.
constexpr size_t kMaxGrowth = 2;
constexpr size_t kSmallGraph = 8;
// Gains below this share of the cost are rounding.
constexpr double kMinGain = 1e-6;

// A graph taken from the queue, with the way that led to it.
struct Expanded {
  CandidateGraph candidate;
  std::vector<RuleMatch> matches;
  std::shared_ptr<const Expanded> parent;
  size_t via = 0;  // match of the parent
};

// A graph in the queue: what a match would make of an expanded one.
struct Entry {
  std::shared_ptr<const Expanded> parent;  // null: the start
  size_t match = 0;
  double us = 0;
  Hash128 hash;
  uint64_t number = 0;  // ties: first come, first served
};

struct Later {
  bool operator()(const Entry& a, const Entry& b) const { return a.us != b.us ? a.us > b.us : a.number > b.number; }
};

RewriteStep step_of(const CandidateGraph& before, const CandidateGraph& after, const RuleMatch& match, double alpha) {
  return {&match.rule(), match.nodes(), describe_match(before.graph(), match),
          before.score().mixed_us(alpha) - after.score().mixed_us(alpha)};
}

class Search {
 public:
  Search(const RuleMatcher& matcher, const BacktrackingOptions& options) : matcher_(matcher), options_(options) {}

  std::vector<Rewritten> run(const CandidateGraph& start) {
    max_nodes_ = kMaxGrowth * start.graph().num_nodes() + kSmallGraph;
    start_ = &start;
    const double us = start.score().mixed_us(options_.alpha);
    best_us_ = us;
    seen_.insert(start.score().hash);
    offer({nullptr, 0, us, start.score().hash, 0});
    queue_.push(kept_.front());
    int64_t idle = 0;
    for (int64_t popped = 0; !queue_.empty() && popped < options_.max_popped && idle < options_.max_idle; ++popped) {
      if (options_.should_stop && options_.should_stop()) break;
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
  void expand(const Entry& entry) {
    const auto expanded = make(entry);
    if (!expanded) return;
    CandidateGraph& candidate = expanded->candidate;
    expanded->matches = matcher_.find_all(candidate.graph());
    for (size_t m = 0; m < expanded->matches.size(); ++m) {
      const std::optional<GraphScore> score = candidate.try_rule(expanded->matches[m]);
      if (!score) continue;
      if (options_.on_candidate) options_.on_candidate(best_us_);
      const double us = score->mixed_us(options_.alpha);
      if (us >= limit_us() || score->num_nodes > max_nodes_) continue;
      if (!seen_.insert(score->hash).second) continue;
      const Entry child{expanded, m, us, score->hash, ++number_};
      queue_.push(child);
      offer(child);
      if (!options_.literal && us < best_us_ * (1 - kMinGain)) best_us_ = us;
    }
  }

  // What a candidate may cost.
  double limit_us() const { return std::max(options_.gamma * best_us_, best_us_ + options_.slack_us); }

  // Matches refer to the graph they were found in: an expanded graph stays where it is.
  std::shared_ptr<Expanded> make(const Entry& entry) const {
    if (!entry.parent) return std::make_shared<Expanded>(Expanded{*start_, {}, nullptr, 0});
    auto child = std::make_shared<Expanded>(Expanded{entry.parent->candidate, {}, entry.parent, entry.match});
    if (!child->candidate.apply(entry.parent->matches[entry.match])) return nullptr;
    return child;
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

  Rewritten result_of(const Entry& entry) const {
    const auto expanded = make(entry);
    if (!expanded) return {std::make_shared<CandidateGraph>(*start_), {}};
    Rewritten result{std::make_shared<CandidateGraph>(expanded->candidate), {}};
    for (const Expanded* at = expanded.get(); at->parent; at = at->parent.get()) {
      result.steps.push_back(
          step_of(at->parent->candidate, at->candidate, at->parent->matches[at->via], options_.alpha));
    }
    std::reverse(result.steps.begin(), result.steps.end());
    return result;
  }

  const RuleMatcher& matcher_;
  const BacktrackingOptions& options_;
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

std::vector<Rewritten> backtrack(const CandidateGraph& start, const RuleMatcher& matcher,
                                 const BacktrackingOptions& options) {
  return Search(matcher, options).run(start);
}

Rewritten replay(const CandidateGraph& start, const RuleMatcher& matcher, const std::vector<RewriteStep>& steps) {
  auto candidate = std::make_shared<CandidateGraph>(start);
  Rewritten result{candidate, {}};
  for (const RewriteStep& step : steps) {
    const CandidateGraph before = *candidate;
    const std::vector<RuleMatch> matches = matcher.find_near(before.graph(), step.nodes);
    const auto same = std::find_if(matches.begin(), matches.end(), [&](const RuleMatch& match) {
      return &match.rule() == step.rule && match.nodes() == step.nodes;
    });
    if (same == matches.end() || !candidate->apply(*same)) break;
    result.steps.push_back(step_of(before, *candidate, *same, 0));
    result.steps.back().gain_us = step.gain_us;
  }
  return result;
}

}  // namespace autograph
