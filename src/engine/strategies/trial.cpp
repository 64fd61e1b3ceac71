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
    return {*first_ms, second_ms, second_ms < *first_ms ? 1.0 : 0.0, 1};
  }
  const std::function<void()> runs[] = {[&] { first.run(inputs_); }, [&] { second.run(inputs_); }};
  Turns turns;
  turns.seconds = seconds / 2;
  turns.min_rounds = kUsualRounds;
  turns.max_rounds = kMaxDuelRounds;
  turns.is_enough = [&](const RoundTimes& times) {
    const bool is_cut = context_.is_cancelled() && times[0].size() >= kMinRounds;
    return is_cut || is_one_sided(times) || Duel::from(times).is_decided(kLeastGain);
  };
  return Duel::from(time_in_turns(runs, turns));
}

}  // namespace autograph
