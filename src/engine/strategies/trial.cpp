#include "engine/strategies/trial.h"

#include <algorithm>

#include "autograph/seeded_inputs.h"
#include "base/check.h"

namespace autograph {
namespace {

constexpr int kMinRounds = 3;
constexpr int kMaxRounds = 9;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Trial::Trial(StrategyContext& context, const Graph& simplified) : context_(context) {
  SeedOptions seeds;
  seeds.seed = context.options().seed;
  inputs_ = seeded_inputs(simplified, seeds);
  CompileOptions plain = context.compile_options();
  plain.strategy = "sequential";
  plain.schedule = nullptr;
  plain.optimize = false;
  plain.release_weights = false;
  plain.tune = false;
  plain.profile = false;
  expected_ = autograph::compile(simplified, plain).run(inputs_);
}

std::optional<Executable> Trial::compile(const Proposal& proposal) const {
  CompileOptions options = context_.compile_options();
  options.schedule = std::make_shared<Schedule>(proposal.schedule);
  options.release_weights = false;
  return autograph::compile(proposal.finished, options);
}

Difference Trial::check(const Executable& executable) const {
  const std::vector<Datum> actual = executable.run(inputs_);
  Difference worst;
  for (size_t k = 0; k < actual.size(); ++k) {
    const Difference one = compare_values(actual[k], expected_[k], {});
    if (worst.ok && !one.ok) worst.why = fmt::format("output {}: {}", k, one.why);
    worst.ok = worst.ok && one.ok;
    worst.max_abs = std::max(worst.max_abs, one.max_abs);
    worst.max_rel = std::max(worst.max_rel, one.max_rel);
  }
  return worst;
}

double Trial::least_ms(const Executable& executable, double seconds) const {
  double least = 1e30;
  const auto start = std::chrono::steady_clock::now();
  for (int run = 0; run < 2 || ms_since(start) < seconds * 1e3; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    executable.run(inputs_);
    least = std::min(least, ms_since(begin));
  }
  return least;
}

Duel Trial::duel(const Executable& first, const Executable& second, double seconds) const {
  if (const auto first_ms = first.simulated_latency_ms()) return {*first_ms, *second.simulated_latency_ms()};
  // Once each, for memory and caches.
  first.run(inputs_);
  second.run(inputs_);
  const double turn = seconds / (2 * kMaxRounds);
  std::vector<double> a;
  std::vector<double> b;
  const auto start = std::chrono::steady_clock::now();
  for (int round = 0; round < kMaxRounds; ++round) {
    if (round >= kMinRounds && (ms_since(start) > seconds * 1e3 || context_.is_cancelled())) break;
    a.push_back(least_ms(first, turn));
    b.push_back(least_ms(second, turn));
  }
  return {median(a), median(b)};
}

}  // namespace autograph
