#include "engine/strategies/trial.h"

#include <algorithm>

#include "autograph/seeded_inputs.h"
#include "base/check.h"
#include "base/stopwatch.h"
#include "base/time_in_turns.h"

namespace autograph {
namespace {

constexpr size_t kMinRounds = 3;
constexpr int kUsualRounds = 5;
// A duel is over after these rounds when one has been this much slower all the time.
constexpr size_t kClearRounds = 2;
constexpr double kClearly = 1.15;
// Runs of a profile take no longer than this together, but for the first few.
constexpr double kProfileSeconds = 1;
constexpr int kMinProfileRuns = 3;

// What a result may differ by, as a share of the largest magnitude of the output.
constexpr double kShare = 1e-3;
// The same for bf16 and 8-bit integers, where a rounding step is that large; and in steps of the integers.
constexpr double kCoarseShare = 3e-2;
constexpr double kCoarseSteps = 8;

bool has_quantized(const Graph& graph) {
  const std::vector<NodeId> nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    const auto& inputs = graph.node(id).inputs();
    return std::any_of(inputs.begin(), inputs.end(), [&](ValueId v) {
      const bool is_tensor = v.is_valid() && graph.type(v).is_tensor();
      return is_tensor && (graph.type(v).dtype() == DType::u8 || graph.type(v).dtype() == DType::i8);
    });
  });
}

// Share of rounds in which the second one was faster.
double share_of_wins(const RoundTimes& times) {
  size_t wins = 0;
  for (size_t round = 0; round < times[0].size(); ++round) wins += times[1][round] < times[0][round] ? 1 : 0;
  return static_cast<double>(wins) / static_cast<double>(times[0].size());
}

// Has every round had the same winner, clearly? Or has the second one never won?
bool is_decided(const RoundTimes& times) {
  const auto least = [](const std::vector<double>& ms) { return *std::min_element(ms.begin(), ms.end()); };
  const auto most = [](const std::vector<double>& ms) { return *std::max_element(ms.begin(), ms.end()); };
  const auto beats = [&](const std::vector<double>& a, const std::vector<double>& b) {
    return kClearly * most(a) < least(b);
  };
  if (times[0].size() >= kMinRounds && share_of_wins(times) == 0) return true;
  return times[0].size() >= kClearRounds && (beats(times[0], times[1]) || beats(times[1], times[0]));
}

}  // namespace

Trial::Trial(StrategyContext& context, const Graph& simplified) : context_(context) {
  SeedOptions seeds;
  seeds.seed = context.options().seed;
  inputs_ = context.options().inputs.empty() ? seeded_inputs(simplified, seeds) : context.options().inputs;
  CompileOptions plain = context.compile_options();
  const bool is_coarse = plain.precision != "f32" || has_quantized(simplified);
  plain.strategy = "sequential";
  plain.schedule = nullptr;
  plain.optimize = is_coarse;
  plain.release_weights = false;
  plain.tune = false;
  plain.profile = false;
  tolerance_.share = is_coarse ? kCoarseShare : kShare;
  tolerance_.byte_steps = is_coarse ? kCoarseSteps : 0;
  expected_ = autograph::compile(simplified, plain).run(inputs_);
}

CompileOptions Trial::options_for(const Proposal& proposal) const {
  CompileOptions options = context_.compile_options();
  options.schedule = std::make_shared<Schedule>(proposal.schedule);
  options.release_weights = false;
  options.tune = options.tune || context_.is_tuned();
  options.tune_in_network = context_.is_tuned_in_network();
  options.may_tune = [this] { return context_.may_tune(); };
  return options;
}

Executable Trial::compile(const Proposal& proposal) const {
  return autograph::compile(proposal.finished, options_for(proposal));
}

Difference Trial::check(const Executable& executable) const {
  return compare_all(executable.run(inputs_), expected_, tolerance_);
}

std::vector<std::vector<NodeSpan>> Trial::profile(const Proposal& proposal, int runs) const {
  CompileOptions options = options_for(proposal);
  options.profile = true;
  const Executable executable = autograph::compile(proposal.finished, options);
  std::vector<std::vector<NodeSpan>> result;
  executable.run(inputs_);
  const Stopwatch watch;
  for (int run = 0; run < runs; ++run) {
    if (run >= kMinProfileRuns && watch.ms() > kProfileSeconds * 1e3) break;
    executable.run(inputs_);
    result.push_back(node_spans(proposal.finished, executable.profile()));
  }
  return result;
}

Duel Trial::duel(const Executable& first, const Executable& second, double seconds) const {
  if (const auto first_ms = first.simulated_latency_ms()) {
    const double second_ms = *second.simulated_latency_ms();
    return {*first_ms, second_ms, second_ms < *first_ms ? 1.0 : 0.0};
  }
  const std::function<void()> runs[] = {[&] { first.run(inputs_); }, [&] { second.run(inputs_); }};
  Turns turns;
  turns.seconds = seconds / 2;
  turns.min_rounds = kUsualRounds;
  turns.is_enough = [&](const RoundTimes& times) {
    return is_decided(times) || (context_.is_cancelled() && times[0].size() >= kMinRounds);
  };
  const RoundTimes times = time_in_turns(runs, turns);
  const std::vector<double> ms = medians(times);
  return {ms[0], ms[1], share_of_wins(times)};
}

}  // namespace autograph
