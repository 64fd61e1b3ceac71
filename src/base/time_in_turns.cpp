#include "base/time_in_turns.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/median.h"
#include "base/stopwatch.h"

namespace autograph {
namespace {

constexpr double kClockTickMs = 1e-6;

double least_ms(const std::function<double()>& run, double turn_ms) {
  const Stopwatch turn;
  double least = 0;
  for (int count = 0; count == 0 || turn.ms() < turn_ms; ++count) {
    const double ms = run();
    least = count == 0 ? ms : std::min(least, ms);
  }
  return least;
}

}  // namespace

RoundTimes time_in_turns(std::span<const std::function<void()>> runs, const Turns& turns) {
  std::vector<std::function<double()>> timed;
  for (const auto& run : runs) {
    timed.emplace_back([&run] {
      const Stopwatch watch;
      run();
      return watch.ms();
    });
  }
  return time_in_turns(timed, turns);
}

RoundTimes time_in_turns(std::span<const std::function<double()>> runs, const Turns& turns) {
  for (const auto& run : runs) run();
  const double turn_ms = turns.seconds * 1e3 / turns.max_rounds;
  const double all_ms = turns.seconds * 1e3 * static_cast<double>(runs.size());
  RoundTimes times(runs.size());
  const Stopwatch watch;
  for (int round = 0; round < turns.max_rounds; ++round) {
    if (round >= turns.min_rounds && watch.ms() > all_ms) break;
    for (size_t i = 0; i < runs.size(); ++i) times[i].push_back(least_ms(runs[i], turn_ms));
    if (turns.is_enough && turns.is_enough(times)) break;
  }
  return times;
}

std::vector<double> medians(const RoundTimes& times) {
  std::vector<double> rounds;  // geometric means
  for (size_t r = 0; r < times.front().size(); ++r) {
    double sum = 0;
    for (const std::vector<double>& of_one : times) sum += std::log(std::max(of_one[r], kClockTickMs));
    rounds.push_back(std::exp(sum / static_cast<double>(times.size())));
  }
  std::vector<double> result;
  for (const std::vector<double>& of_one : times) {
    std::vector<double> shares;
    for (size_t r = 0; r < rounds.size(); ++r) shares.push_back(of_one[r] / rounds[r]);
    result.push_back(median(shares) * median(rounds));
  }
  return result;
}

}  // namespace autograph
