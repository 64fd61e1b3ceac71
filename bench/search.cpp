// How fast the search is and how it grows: matching, trying rules and taking graphs from the queue, on chains of gated
// blocks of 100 to 10,000 nodes. One line of JSON for each size; exits with 1 when a candidate's score is wrong.
#include <fmt/core.h>

#include <chrono>
#include <cmath>

#include "autograph/op_def.h"
#include "optimize/search/backtracking.h"
#include "optimize/search/partition.h"
#include "optimize/search/search_testing.h"

namespace {

using namespace autograph;
using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

bool measure(int num_blocks) {
  constexpr size_t kMaxTried = 4000;
  PlainCost model;
  FusedCost cost(model);
  const std::vector<const Rule*> rules = every_rule();
  const RuleMatcher matcher(rules);
  const Graph graph = gated_blocks(num_blocks);
  CandidateGraph candidate(graph, cost);

  auto start = Clock::now();
  const std::vector<RuleMatch> matches = matcher.find_all(candidate.graph());
  const double find_us = us_since(start);

  start = Clock::now();
  size_t tried = 0;
  for (; tried < kMaxTried; ++tried) candidate.try_rule(matches[tried % matches.size()]);
  const double try_us = us_since(start) / static_cast<double>(tried);

  start = Clock::now();
  const Partition parts = partition(graph, matches, {12, 30});
  const double partition_us = us_since(start);

  candidate.apply(matches.front());
  const CandidateGraph fresh(candidate.graph(), cost);
  const bool ok = std::abs(candidate.score().sum_us - fresh.score().sum_us) < 1e-6 * fresh.score().sum_us;
  fmt::print(
      "{{\"nodes\":{},\"matches\":{},\"find_all_us\":{:.0f},\"try_us\":{:.2f},\"candidates_per_second\":{:.0f},"
      "\"partition_ms\":{:.1f},\"parts\":{},\"ok\":{}}}\n",
      graph.num_nodes(), matches.size(), find_us, try_us, 1e6 / try_us, partition_us / 1e3, parts.parts.size(), ok);
  return ok;
}

}  // namespace

int main() {
  bool ok = true;
  for (const int num_blocks : {17, 50, 167, 500, 1667}) ok = measure(num_blocks) && ok;
  return ok ? 0 : 1;
}
