#include "autograph/nn/schedules.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"

namespace autograph::nn {
namespace {

// Half a cosine from `from` to `to` while `part` goes from 0 to 1.
double along_cosine(double from, double to, double part) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * part));
}

void check_steps(const char* schedule, int64_t steps) {
  AG_CHECK_USER(steps >= 1, ValueError, "[nn] {}: expected 1 step or more, got {}", schedule, steps);
}

}  // namespace

Schedule constant_rate(double rate) {
  return [rate](int64_t) { return rate; };
}

Schedule step_decay(double rate, int64_t every, double factor) {
  check_steps("step_decay", every);
  return [=](int64_t step) { return rate * std::pow(factor, static_cast<double>(step / every)); };
}

Schedule cosine(double rate, int64_t steps, double lowest) {
  check_steps("cosine", steps);
  return [=](int64_t step) {
    return along_cosine(rate, lowest, static_cast<double>(std::min(step, steps)) / static_cast<double>(steps));
  };
}

Schedule multi_step(double rate, std::vector<int64_t> milestones, double factor) {
  return [=](int64_t step) {
    const auto is_passed = [step](int64_t milestone) { return milestone <= step; };
    return rate * std::pow(factor, static_cast<double>(std::ranges::count_if(milestones, is_passed)));
  };
}

Schedule linear(double rate, int64_t steps, double first, double last) {
  check_steps("linear", steps);
  return [=](int64_t step) {
    const double part = static_cast<double>(std::min(step, steps)) / static_cast<double>(steps);
    return rate * (first + (last - first) * part);
  };
}

Schedule polynomial(double rate, int64_t steps, double power) {
  check_steps("polynomial", steps);
  return [=](int64_t step) {
    return rate * std::pow(1 - static_cast<double>(std::min(step, steps)) / static_cast<double>(steps), power);
  };
}

Schedule cosine_restarts(double rate, int64_t steps, int64_t factor, double lowest) {
  check_steps("cosine_restarts", steps);
  AG_CHECK_USER(factor >= 1, ValueError, "[nn] cosine_restarts: expected a factor of 1 or more, got {}", factor);
  return [=](int64_t step) {
    if (factor == 1) step %= steps;
    int64_t length = steps;
    for (; step >= length; length *= factor) step -= length;
    return along_cosine(rate, lowest, static_cast<double>(step) / static_cast<double>(length));
  };
}

Schedule in_turn(std::vector<Schedule> schedules, std::vector<int64_t> milestones) {
  AG_CHECK_USER(schedules.size() == milestones.size() + 1, ValueError,
                "[nn] in_turn: expected a milestone between each two schedules, got {} of {}", milestones.size(),
                schedules.size());
  AG_CHECK_USER(std::ranges::is_sorted(milestones), ValueError, "[nn] in_turn: expected rising milestones, got {}",
                bracketed(milestones));
  return [=](int64_t step) {
    const auto next = std::ranges::upper_bound(milestones, step);
    const int64_t begin = next == milestones.begin() ? 0 : *(next - 1);
    return schedules[static_cast<size_t>(next - milestones.begin())](step - begin);
  };
}

Schedule warm_up(Schedule then, int64_t steps) {
  check_steps("warm_up", steps);
  return [then = std::move(then), steps](int64_t step) {
    const double share = static_cast<double>(std::min(step + 1, steps)) / static_cast<double>(steps);
    return then(step) * share;
  };
}

Schedule one_cycle(double highest, int64_t steps, const OneCycle& options) {
  check_steps("one_cycle", steps);
  AG_CHECK_USER(options.pct_start > 0 && options.pct_start < 1, ValueError,
                "[nn] one_cycle: expected 0 < pct_start < 1, got {}", options.pct_start);
  const double first = highest / options.div_factor, last = first / options.final_div_factor;
  const auto total = static_cast<double>(steps);
  const double top = options.pct_start * total - 1, end = total - 1;
  return [=](int64_t step) {
    const double at = std::min(static_cast<double>(step), end);
    if (top > 0 && at <= top) return along_cosine(first, highest, at / top);
    return end > top ? along_cosine(highest, last, (at - top) / (end - top)) : highest;
  };
}

Schedule find_schedule(const std::string& name, double rate, int64_t steps, int64_t warm_up_steps) {
  const auto warmed = [&](Schedule schedule) {
    return warm_up_steps > 0 ? warm_up(std::move(schedule), warm_up_steps) : schedule;
  };
  if (name == "constant") return warmed(constant_rate(rate));
  if (name == "step") return warmed(step_decay(rate, std::max<int64_t>(1, (steps + 2) / 3)));
  if (name == "cosine") return warmed(cosine(rate, steps));
  if (name == "one_cycle") return one_cycle(rate, steps);
  const std::vector<std::string> names{"constant", "step", "cosine", "one_cycle"};
  throw ValueError(fmt::format("[nn] schedule: expected constant, step, cosine or one_cycle, got '{}'{}", name,
                               did_you_mean(name, names)));
}

double Plateau::next(double metric) {
  if (metric < best_ * (1 - threshold_) || (std::isinf(best_) && metric < best_)) {
    best_ = metric;
    bad_ = 0;
  } else if (++bad_ > patience_) {
    rate_ *= factor_;
    bad_ = 0;
  }
  return rate_;
}

void set_learning_rate(StateStore store, double rate) { store.set("optimizer/learning_rate", Tensor::scalar(rate)); }

}  // namespace autograph::nn
