#include "cli/contest.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>

#include "autograph/devices.h"
#include "autograph/error.h"
#include "autograph/graph.h"
#include "autograph/op_def.h"
#include "base/check.h"
#include "base/files/cache_folder.h"
#include "base/text/read_number.h"
#include "cli/interrupt.h"

namespace autograph::cli {
namespace {

bool is_simulated(const std::string& device) { return get_device(device).properties().has_exact_times; }

[[noreturn]] void end_interrupted() { throw Error(ExitCode::interrupted, "[search] it was interrupted"); }

// What all entrants are compared with, found once and not of anyone's time.
std::shared_ptr<const Truth> truth_for_all(Session& session, const Graph& graph, const std::vector<Datum>& inputs,
                                           const CompileOptions& compile, const SearchOptions& search_as) {
  const InterruptScope scope;
  auto truth = find_truth(session, graph, inputs, compile, search_as);
  if (InterruptScope::was_interrupted()) end_interrupted();
  return truth;
}

Optimized find(Session& session, const LoadedModel& loaded, const CompileOptions& compile,
               const SearchOptions& search_as) {
  Optimized found = search(session, loaded, compile, search_as);
  if (found.report.stop_reason == StopReason::cancelled) end_interrupted();
  return found;
}

// A copy of a cache, as long as it stands. Entrants search one after the other: with one cache for all, later ones
// would find what earlier ones paid for.
class CacheCopy {
 public:
  explicit CacheCopy(const std::string& folder) {
    static std::atomic<int> number = 0;
    std::error_code code;
    const std::filesystem::path folder_for_such = std::filesystem::temp_directory_path(code);
    path_ = folder_for_such / fmt::format("autograph-contest-{}-{}", getpid(), number++);
    if (!code) std::filesystem::create_directories(path_, code);
    AG_CHECK_USER(!code, IoError,
                  "[cli] cache: cannot make the folder '{}' for a copy of it ({}; TMPDIR names another)",
                  path_.string(), code.message());
    // What cannot be read, or goes away meanwhile, is measured again: it is a cache.
    const auto options = std::filesystem::copy_options::recursive;
    if (std::filesystem::is_directory(folder, code)) std::filesystem::copy(folder, path_, options, code);
  }
  ~CacheCopy() {
    std::error_code ignored;  // what is left behind is in the folder for such things
    std::filesystem::remove_all(path_, ignored);
  }
  CacheCopy(const CacheCopy&) = delete;
  CacheCopy& operator=(const CacheCopy&) = delete;

  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// What the model gives as it is, on the device's kernels.
Outputs expected_outputs(const Graph& graph, CompileOptions compile_as, const std::vector<Datum>& inputs) {
  compile_as.expert.use_passes = false;
  compile_as.tune = false;
  return compile(graph, compile_as).run(inputs);
}

// The same for equal plans: what is computed, in which order, on which streams.
std::string plan_key(const Optimized& found) {
  std::string key = to_string(structural_hash(found.graph)) + to_string(found.schedule, found.graph);
  for (const NodeId id : found.graph.topological_order()) key += found.graph.node(id).op().name;
  return key;
}

CompileOptions without_passes(CompileOptions options, const std::vector<std::string>& names) {
  std::vector<std::string>& disabled = options.expert.disabled_passes;
  disabled.insert(disabled.end(), names.begin(), names.end());
  return options;
}

// The rounds of every other making, from the first or from the second one on.
RoundTimes half_of(const RoundTimes& times, size_t which) {
  RoundTimes half;
  for (const std::vector<double>& of_one : times) {
    std::vector<double>& some = half.emplace_back();
    for (size_t round = 0; round < of_one.size(); ++round) {
      if (round / kRoundsOfOneMaking % 2 == which) some.push_back(of_one[round]);
    }
  }
  return half;
}

}  // namespace

std::vector<std::string> split_list(const std::string& text, const char* what) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    AG_CHECK_USER(!parts.back().empty(), UserError, "[cli] {}: expected a list 'a,b,c', got '{}'", what, text);
    begin = end + 1;
  }
  return parts;
}

std::vector<int64_t> split_numbers(const std::string& text, const char* what) {
  std::vector<int64_t> numbers;
  for (const std::string& part : split_list(text, what)) {
    const auto number = read_number<int64_t>(part);
    AG_CHECK_USER(number && *number >= 1, UserError, "[cli] {}: expected numbers of 1 or more, got '{}'", what, part);
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<Result> hold_contest(Session& session, LoadedModel loaded, const RunOptions& run,
                                 const std::vector<Entrant>& entrants, double seconds) {
  CompileOptions options = compile_options(run);
  options.release_weights = false;
  loaded.seeds.seed = static_cast<uint64_t>(run.seed);
  bind_extents(loaded);
  const std::vector<Datum> inputs = seeded_inputs(loaded.model.graph, loaded.seeds);
  const Outputs expected = expected_outputs(loaded.model.graph, options, inputs);
  const std::shared_ptr<const Truth> truth =
      truth_for_all(session, loaded.model.graph, inputs, options, entrants.front().search);
  const std::string cache_folder = options.cache_folder.empty() ? default_cache_folder() : options.cache_folder;
  std::vector<Result> results;
  std::vector<Optimized> plans;
  std::vector<CompileOptions> compile_as;  // each plan
  std::vector<Executable> executables;     // of each plan
  std::vector<size_t> plan_of;             // of each result
  std::map<std::string, size_t> seen;
  for (const Entrant& entrant : entrants) {
    // All on the same kernels: --tune chooses them for everyone.
    SearchOptions search_as = entrant.search;
    search_as.use_tuning = false;
    search_as.inputs = inputs;
    search_as.truth = truth;
    search_as.runs_to_come = 1;
    const CacheCopy cache(cache_folder);
    const CompileOptions own_options = without_passes(options, entrant.without_passes);
    CompileOptions search_for = own_options;
    search_for.cache_folder = cache.path();
    Optimized found = find(session, loaded, search_for, search_as);
    const auto [plan, is_new] = seen.emplace(plan_key(found), plans.size());
    if (is_new) executables.push_back(compile(found, own_options));
    plan_of.push_back(plan->second);
    Result& result = results.emplace_back();
    result.name = entrant.name;
    result.streams = found.schedule.width();
    if (is_new) {  // the first run: later ones have other states
      const Outputs outputs = executables.back().run(inputs);
      result.difference = compare_all(outputs, expected, tolerance_for(loaded.model.graph, run));
    } else {
      const auto first = std::find(plan_of.begin(), plan_of.end(), plan_of.back()) - plan_of.begin();
      result.same_as = results[static_cast<size_t>(first)].name;
      result.difference = results[static_cast<size_t>(first)].difference;
    }
    result.report = found.report;
    result.latency_ms = result.report.latency_after_ms;
    if (is_new) {
      plans.push_back(std::move(found));
      compile_as.push_back(own_options);
    }
  }
  for (Result& result : results) result.halves_ms.fill(result.latency_ms);
  if (is_simulated(run.device)) return results;
  std::vector<Contestant> contestants;
  for (const Executable& executable : executables) contestants.push_back({&executable, &inputs});
  const auto renew = [&] {
    for (size_t i = 0; i < plans.size(); ++i) {
      executables[i] = Executable();
      executables[i] = compile(plans[i], compile_as[i]);
    }
  };
  const RoundTimes times = rounds_in_turns(session, contestants, seconds, renew);
  const std::vector<double> ms = medians(times);
  const std::array<std::vector<double>, 2> of_halves = {medians(half_of(times, 0)), medians(half_of(times, 1))};
  for (size_t i = 0; i < results.size(); ++i) {
    results[i].latency_ms = ms[plan_of[i]];
    results[i].halves_ms = {of_halves[0][plan_of[i]], of_halves[1][plan_of[i]]};
  }
  return results;
}

std::string simulation_note(const std::string& device) {
  if (!is_simulated(device)) return "";
  return fmt::format("latencies are SIMULATED: the clock of '{}', not a measurement\n", device);
}

}  // namespace autograph::cli
