// Two ways to search the parts of a network: backtracking, and an equality graph, each with the same number of graphs
// to look at.
//
//   bench_search_parts MODEL [DEVICE [CANDIDATES...]]
//
// One line of JSON for each number of candidates: sums over all kinds of parts of the mixed cost and the makespan
// before, and of the least that each way found; seconds, graphs looked at, and in how many parts one way found less
// than the other. MODEL is one of `autograph zoo`; sim:v100 and 50, 200 and 1000 candidates when not given. Exits with
// 1 when a graph is not valid or costs other than was told.
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <set>
#include <string>

#include "autograph/verify.h"
#include "autograph/zoo.h"
#include "engine/prepare_graph.h"
#include "engine/strategies/strategy.h"
#include "optimize/search/equality/equality_search.h"
#include "optimize/search/part_graph.h"
#include "optimize/search/partition.h"
#include "schedule/schedulers/list.h"
#include "schedule/schedulers/task_stages.h"
#include "support/strategy_setup.h"

namespace {

using namespace autograph;
using Clock = std::chrono::steady_clock;

// What one way found.
struct Outcome {
  double mixed_us = 0;
  double makespan_us = 0;
  double seconds = 0;
  size_t candidates = 0;
  bool is_right = true;

  void add(const Outcome& other) {
    mixed_us += other.mixed_us;
    makespan_us += other.makespan_us;
    seconds += other.seconds;
    candidates += other.candidates;
    is_right = is_right && other.is_right;
  }
  std::string json() const {
    return fmt::format(R"({{"mixed_us":{:.3f},"makespan_us":{:.3f},"seconds":{:.2f},"candidates":{}}})", mixed_us,
                       makespan_us, seconds, candidates);
  }
};

// In how many parts one way found less than the other.
struct Score {
  int backtracking = 0;
  int equality = 0;

  void add(double backtracking_us, double equality_us) {
    if (backtracking_us < equality_us * (1 - 1e-6)) ++backtracking;
    if (equality_us < backtracking_us * (1 - 1e-6)) ++equality;
  }
  std::string json() const {
    return fmt::format(R"({{"backtracking_less":{},"equality_less":{}}})", backtracking, equality);
  }
};

struct Sums {
  Outcome before;
  Outcome backtracking;
  Outcome equality;
  Score costs;
  Score makespans;
};

using Way = std::vector<Rewritten> (*)(const CandidateGraph&, const RuleMatcher&, const BacktrackingOptions&);

class Bench : StrategySetup {
 public:
  Bench(std::string model, const std::string& device) : model_(std::move(model)) {
    open(device);
    const Graph graph = prepare_graph(build_zoo_model(model_), get_device(device), compile_, PassHalf::simplify);
    const Partition parts = partition(graph, context_->matcher().find_all(graph), {});
    std::set<Hash128> seen;
    for (const auto& [first, last] : parts.intervals) {
      std::vector<NodeId> nodes;
      for (uint32_t p = first; p <= last; ++p) nodes.insert(nodes.end(), parts.parts[p].begin(), parts.parts[p].end());
      PartGraph part = extract_part(graph, nodes);
      if (seen.insert(part_key(part)).second) parts_.push_back(std::move(part));
    }
  }

  // All kinds of parts once.
  bool run(size_t candidates) {
    Sums sums;
    for (const PartGraph& part : parts_) {
      const CandidateGraph start(part.graph, *cost_);
      sums.before.add(outcome_of({{std::make_shared<CandidateGraph>(start), {}}}));
      const Outcome backtracked = measure(start, backtrack, candidates);
      const Outcome equal = measure(start, search_equalities, candidates);
      sums.backtracking.add(backtracked);
      sums.equality.add(equal);
      sums.costs.add(backtracked.mixed_us, equal.mixed_us);
      sums.makespans.add(backtracked.makespan_us, equal.makespan_us);
    }
    fmt::print(
        "{{\"model\":\"{}\",\"device\":\"{}\",\"parts\":{},\"candidates\":{},\"before\":{},\"backtracking\":{},"
        "\"equality\":{},\"mixed\":{},\"makespan\":{}}}\n",
        model_, compile_.device, parts_.size(), candidates, sums.before.json(), sums.backtracking.json(),
        sums.equality.json(), sums.costs.json(), sums.makespans.json());
    std::fflush(stdout);
    return sums.backtracking.is_right && sums.equality.is_right;
  }

 private:
  double makespan_us(const CandidateGraph& candidate) {
    return ListMakespan(context_->limits())
        .us(without_free_tasks(make_task_graph(candidate.graph(), [&](const Graph& g, NodeId id) {
              return context_->task_to_finish(g, id, candidate.node_us(id), candidate.node_load(id));
            })).graph);
  }

  Outcome outcome_of(const std::vector<Rewritten>& found) {
    Outcome outcome{found.front().candidate->score().mixed_us(1), makespan_us(*found.front().candidate), 0, 0, true};
    for (const Rewritten& one : found) {
      verify(one.candidate->graph());
      const double us = one.candidate->score().mixed_us(1);
      const double anew = CandidateGraph(one.candidate->graph(), *cost_).score().mixed_us(1);
      outcome.is_right = outcome.is_right && std::abs(us - anew) <= 1e-6 * us;
      outcome.makespan_us = std::min(outcome.makespan_us, makespan_us(*one.candidate));
    }
    return outcome;
  }

  Outcome measure(const CandidateGraph& start, Way search, size_t candidates) {
    size_t looked_at = 0;
    BacktrackingOptions how;
    how.slack_us = 0.25 * start.score().mixed_us(1);
    how.may_try = [](const CandidateGraph&, const RuleMatch& match) { return match.rule().kind != RuleClass::spreads; };
    how.on_candidate = [&](double) { ++looked_at; };
    how.should_stop = [&] { return looked_at >= candidates; };
    const auto begin = Clock::now();
    const std::vector<Rewritten> found = search(start, context_->matcher(), how);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    Outcome outcome = outcome_of(found);
    outcome.seconds = seconds;
    outcome.candidates = looked_at;
    return outcome;
  }

  std::string model_;
  std::vector<PartGraph> parts_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_search_parts MODEL [DEVICE [CANDIDATES...]]\n");
    return 2;
  }
  Bench bench(argv[1], argc > 2 ? argv[2] : "sim:v100");
  std::vector<size_t> candidates;
  for (int i = 3; i < argc; ++i) candidates.push_back(std::strtoul(argv[i], nullptr, 10));
  if (candidates.empty()) candidates = {50, 200, 1000};
  bool ok = true;
  for (const size_t count : candidates) ok = bench.run(count) && ok;
  return ok ? 0 : 1;
}
