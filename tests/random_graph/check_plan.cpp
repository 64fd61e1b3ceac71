#include "random_graph/check_plan.h"

#include <algorithm>

#include "autograph/bisect.h"
#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/search.h"
#include "autograph/text.h"
#include "autograph/verify.h"
#include "support/agreement.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

constexpr std::string_view kSearch = "search:";
constexpr std::string_view kTuned = "tuned";
// Those that need not know the extents.
constexpr const char* kOfAnyExtents[] = {"plain", "tuned", "exact", "unoptimised", "attested", "tuned in network"};

bool is_static(const TestGraph& test) {
  const auto& inputs = test.graph.inputs();
  return std::all_of(inputs.begin(), inputs.end(), [&](ValueId v) { return test.graph.type(v).is_static(); });
}

CompileOptions options_of(std::string_view kind, int threads, const std::string& device) {
  CompileOptions options;
  options.device = device;
  options.threads = threads;
  options.exact = kind == "exact";
  options.expert.use_passes = kind != "unoptimised";
  options.attest = kind == "attested";
  if (kind.starts_with(kTuned)) {
    options.tune = true;
    options.expert.tune_in_network = kind != kTuned;
  }
  if (options.attest || kind.starts_with(kTuned) || kind.starts_with(kSearch)) {
    // Measurements of one graph are of no use to others, and those of the user stay as they are.
    static const TestFolder kFolder;
    options.cache_folder = kFolder.path();
  }
  return options;
}

// Small, so that many graphs can be searched: what is looked at is right or wrong whether it pays or not.
SearchOptions search_of(std::string_view kind, int threads) {
  SearchOptions search;
  search.strategy = strategy_named(kind.substr(kSearch.size()));
  search.budget_seconds = 0.04;
  search.max_candidates = 15;
  search.keep = 2;
  search.rounds = 1;
  search.max_streams = std::max(2, threads);
  search.use_tuning = false;
  search.never_slower = false;
  search.verify = false;
  search.alpha = 0.5;
  return search;
}

std::vector<Datum> run_plan(const TestGraph& test, std::string_view kind, int threads, const std::string& device) {
  const CompileOptions options = options_of(kind, threads, device);
  if (!kind.starts_with(kSearch)) return compile(test.graph, options).run(test.inputs);
  const Optimized found = optimize(test.graph, options, search_of(kind, threads));
  return compile(found, options).run(test.inputs);
}

}  // namespace

std::vector<std::string> plan_kinds() {
  std::vector<std::string> kinds(std::begin(kOfAnyExtents), std::end(kOfAnyExtents));
  for (const Strategy strategy : available_strategies()) {
    kinds.push_back(std::string(kSearch) + std::string(to_string(strategy)));
  }
  return kinds;
}

std::string drawn_plan_kind(uint64_t seed, const TestGraph& test) {
  const std::vector<std::string> kinds = plan_kinds();
  const size_t count = is_static(test) ? kinds.size() : std::size(kOfAnyExtents);
  return kinds[1 + seed % (count - 1)];
}

PlanChecker::PlanChecker(const TestGraph& test, std::string device) : test_(test), device_(std::move(device)) {
  try {
    verify(test.graph);
    expected_ = run_reference(test.graph, test.inputs);
  } catch (const UserError& error) {
    is_refused_ = true;
    refusal_ = error.what();
  }
}

PlanCheck PlanChecker::check(const std::string& kind, int threads) const {
  PlanCheck result;
  try {
    const std::vector<Datum> actual = run_plan(test_, kind, threads, device_);
    result.difference =
        is_refused_ ? "runs, where the reference refuses: " + refusal_ : disagreement(actual, expected_, test_);
  } catch (const UserError& error) {
    result.is_refused = is_refused_;
    if (!is_refused_) result.difference = error.what();
  } catch (const std::exception& error) {
    result.difference = error.what();
  }
  return result;
}

std::string explain_difference(const TestGraph& test, const std::string& kind, int threads, const std::string& device) {
  BisectOptions how;
  if (kind.starts_with(kSearch)) how.search = search_of(kind, threads);
  const BisectReport report = bisect(test.graph, options_of(kind, threads, device), test.inputs, how);
  std::string text =
      "bisect: " + std::string(to_string(report.culprit)) + " " + report.name + " " + report.where + "\n";
  return text + print_text(report.smallest);
}

}  // namespace autograph
