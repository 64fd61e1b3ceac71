#include "optimize/search/equality/extraction.h"

#include <algorithm>
#include <queue>

namespace autograph {
namespace {

// Gains below this share of the cost are rounding.
constexpr double kMinGain = 1e-6;
// Forms that are improved, beside that of the shortest path.
constexpr size_t kStarts = 2;

// A choice of terms, improved step by step.
class Climb {
 public:
  Climb(RewriteSpace& space, BestForms::Entry from) : space_(space), best_(std::move(from)) { mark(); }

  void run() {
    for (bool has_gained = true; has_gained;) {
      has_gained = false;
      for (const FoundRewrite& rewrite : space_.rewrites()) {
        if (space_.should_stop()) return;
        has_gained |= try_rewrite(rewrite);
      }
      for (const TermId& term : space_.start_terms()) {
        if (!is_chosen(term)) has_gained |= try_wishes({{&term, 1}, best_.terms, space_.start_terms()});
      }
    }
  }

 private:
  void mark() {
    is_chosen_.assign(space_.graph().num_terms(), false);
    for (const TermId term : best_.terms) is_chosen_[space_.graph().find_term(term)] = true;
  }

  bool is_chosen(TermId term) const { return is_chosen_[space_.graph().find_term(term)]; }

  // What it adds in the graph as it is, or with all that led to it: nothing may read what it makes otherwise.
  bool try_rewrite(const FoundRewrite& rewrite) {
    const auto chosen = [&](TermId term) { return is_chosen(term); };
    if (std::all_of(rewrite.added.begin(), rewrite.added.end(), chosen)) return false;
    const std::vector<TermId>& start = space_.start_terms();
    return try_wishes({rewrite.added, best_.terms, rewrite.chain, rewrite.form, start}) ||
           try_wishes({rewrite.chain, best_.terms, rewrite.form, start});
  }

  bool try_wishes(std::initializer_list<std::span<const TermId>> wishes) {
    if (space_.should_stop()) return false;
    std::optional<BestForms::Entry> made = space_.look_at(wishes);
    if (!made || made->us >= best_.us * (1 - kMinGain)) return false;
    best_ = std::move(*made);
    mark();
    return true;
  }

  RewriteSpace& space_;
  BestForms::Entry best_;
  std::vector<bool> is_chosen_;  // by term
};

// Values that are ready leave the queue soonest first (Knuth's generalisation of Dijkstra's algorithm), so that no term
// depends on itself.
class ShortestPaths {
 public:
  explicit ShortestPaths(const RewriteSpace& space) : graph_(space.graph()), space_(space) {}

  std::vector<TermId> run() {
    waits_for_.resize(graph_.num_terms(), 0);
    for (TermId term = 0; term < graph_.num_terms(); ++term) {
      if (graph_.find_term(term) == term) begin(term);
    }
    while (!queue_.empty()) {
      const auto [us, term] = queue_.top();
      queue_.pop();
      finish(term, us);
    }
    return std::move(order_);
  }

 private:
  using Ready = std::pair<double, TermId>;

  void begin(TermId term) {
    std::vector<ClassId> needed;
    for (const ClassId input : graph_.term(term).inputs) {
      if (input != kNoTerm && !graph_.is_source(input)) needed.push_back(graph_.find_class(input));
    }
    std::sort(needed.begin(), needed.end());
    needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
    waits_for_[term] = needed.size();
    if (needed.empty()) queue_.push({space_.term_us(term), term});
  }

  void finish(TermId term, double us) {
    bool is_first = false;
    for (const ClassId output : graph_.term(term).outputs) {
      const ClassId id = graph_.find_class(output);
      if (id >= is_ready_.size()) is_ready_.resize(id + 1, false);
      if (is_ready_[id]) continue;
      is_ready_[id] = true;
      is_first = true;
      for (const TermId reader : graph_.readers(id)) {
        if (!graph_.is_source(id) && --waits_for_[reader] == 0) queue_.push({us + space_.term_us(reader), reader});
      }
    }
    if (is_first) order_.push_back(term);
  }

  const EqualityGraph& graph_;
  const RewriteSpace& space_;
  std::vector<size_t> waits_for_;  // by term: classes that it reads and that are not ready
  std::vector<bool> is_ready_;     // by class
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> queue_;
  std::vector<TermId> order_;
};

}  // namespace

std::vector<TermId> shortest_path_terms(const RewriteSpace& space) { return ShortestPaths(space).run(); }

void extract(RewriteSpace& space) {
  std::vector<std::vector<TermId>> starts;
  for (const BestForms::Entry& entry : space.best().entries()) {
    if (starts.size() < kStarts) starts.push_back(entry.terms);
  }
  starts.push_back(shortest_path_terms(space));
  for (const std::vector<TermId>& start : starts) {
    if (space.should_stop()) return;
    if (std::optional<BestForms::Entry> from = space.look_at({start, space.start_terms()})) {
      Climb(space, std::move(*from)).run();
    }
  }
}

}  // namespace autograph
