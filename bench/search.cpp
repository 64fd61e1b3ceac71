// How fast the search is and how it grows.
//
//   bench_search                                  matching, trying rules and cutting into parts, on chains of gated
//                                                 blocks of 100 to 10,000 nodes
//   bench_search MODEL NODES [BUDGET [DEVICE]]    optimize() on a network (transformer or cnn) of about so many nodes:
//                                                 wall time, rewrites, memory, latency before and after
//   bench_search MODEL NODES --save FILE.onnx     the network as a file, for `autograph optimize`
//
// One line of JSON for each measurement; exits with 1 when a candidate's score or the result's numbers are wrong.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

#include "autograph/model_io.h"
#include "autograph/op_def.h"
#include "autograph/search.h"
#include "autograph/seeded_inputs.h"
#include "optimize/search/backtracking.h"
#include "optimize/search/partition.h"
#include "optimize/search/search_testing.h"
#include "support/graphs/deep_graphs.h"

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

  // As above, where only the sum counts: nothing behind a rewrite is looked at.
  candidate.forget_paths();
  start = Clock::now();
  for (size_t i = 0; i < tried; ++i) candidate.try_rule(matches[i % matches.size()]);
  const double try_sum_us = us_since(start) / static_cast<double>(tried);
  candidate.find_paths();

  start = Clock::now();
  const Partition parts = partition(graph, matches, {12, 30});
  const double partition_us = us_since(start);

  candidate.apply(matches.front());
  const CandidateGraph fresh(candidate.graph(), cost);
  const bool ok = std::abs(candidate.score().sum_us - fresh.score().sum_us) < 1e-6 * fresh.score().sum_us;
  fmt::print(
      "{{\"nodes\":{},\"matches\":{},\"find_all_us\":{:.0f},\"try_us\":{:.2f},\"try_sum_us\":{:.2f},\"candidates_per_"
      "second\":{:.0f},"
      "\"partition_ms\":{:.1f},\"parts\":{},\"ok\":{}}}\n",
      graph.num_nodes(), matches.size(), find_us, try_us, try_sum_us, 1e6 / try_us, partition_us / 1e3,
      parts.parts.size(), ok);
  return ok;
}

// As many equal layers as make about `num_nodes` nodes.
Graph network(const std::string& model, size_t num_nodes) {
  const auto build = [&](int layers) { return model == "cnn" ? deep_cnn(layers) : deep_transformer(layers); };
  constexpr int kSample = 10;
  const double per_layer = static_cast<double>(build(kSample).num_nodes()) / kSample;
  return build(std::max(1, static_cast<int>(std::lround(static_cast<double>(num_nodes) / per_layer))));
}

// The most memory that this process has had, in MiB.
double peak_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::atof(line.c_str() + 6) / 1024;
  }
  return 0;
}

bool optimize_network(const std::string& model, size_t num_nodes, double budget, const std::string& device) {
  const Graph graph = network(model, num_nodes);
  CompileOptions compile_as;
  compile_as.device = device;
  SearchOptions search;
  search.budget_seconds = budget;
  const auto start = Clock::now();
  const Optimized found = optimize(graph, compile_as, search);
  const double seconds = us_since(start) / 1e6;
  const SearchReport& report = found.report;
  fmt::print(
      "{{\"model\":\"{}\",\"nodes\":{},\"device\":\"{}\",\"budget_s\":{},\"wall_s\":{:.2f},\"rewrites\":{},\"nodes_"
      "after\":{},"
      "\"candidates\":{},\"measured\":{},\"parts\":{},\"ms_before\":{:.3f},\"ms_after\":{:.3f},\"peak_mib\":{:.0f},"
      "\"ok\":{}}}\n",
      model, graph.num_nodes(), device, budget, seconds, report.rules_applied.size(), found.graph.num_nodes(),
      report.candidates, report.measured, report.partitions, report.latency_before_ms, report.latency_after_ms,
      peak_mib(), report.agrees);
  return report.agrees;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  bool ok = true;
  if (arguments.empty()) {
    for (const int num_blocks : {17, 50, 167, 500, 1667}) ok = measure(num_blocks) && ok;
    return ok ? 0 : 1;
  }
  if (arguments.size() < 2 || (arguments[0] != "transformer" && arguments[0] != "cnn")) {
    fmt::print(stderr, "usage: bench_search [transformer|cnn NODES [BUDGET [DEVICE]] | --save FILE]\n");
    return 2;
  }
  const size_t num_nodes = std::strtoull(arguments[1].c_str(), nullptr, 10);
  if (arguments.size() == 4 && arguments[2] == "--save") {
    save_onnx(network(arguments[0], num_nodes), arguments[3]);
    return 0;
  }
  const double budget = arguments.size() > 2 ? std::atof(arguments[2].c_str()) : 30;
  return optimize_network(arguments[0], num_nodes, budget, arguments.size() > 3 ? arguments[3] : "cpu") ? 0 : 1;
}
