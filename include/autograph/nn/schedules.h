// Learning rates as functions of the step, with the formulas of torch.optim.lr_scheduler. The training loop sets the
// state "optimizer/learning_rate" before each step; a loop of one's own does so with StateStore::set().
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "autograph/state_store.h"

namespace autograph::nn {

/// The rate of step 0, 1, 2...
using Schedule = std::function<double(int64_t step)>;

/// Always the same.
Schedule constant_rate(double rate);
/// rate * factor^(step / every): StepLR.
Schedule step_decay(double rate, int64_t every, double factor = 0.1);
/// Half a cosine from `rate` to `lowest` in `steps`, `lowest` from there on: CosineAnnealingLR without its restarts.
Schedule cosine(double rate, int64_t steps, double lowest = 0);
/// rate * factor^(milestones that are not behind the step): MultiStepLR.
Schedule multi_step(double rate, std::vector<int64_t> milestones, double factor = 0.1);
/// A line from rate * first to rate * last in `steps`, flat from there on: LinearLR.
Schedule linear(double rate, int64_t steps, double first = 1.0 / 3, double last = 1);
/// rate * (1 - step / steps)^power, 0 from there on: PolynomialLR.
Schedule polynomial(double rate, int64_t steps, double power = 1);
/// Half a cosine from `rate` to `lowest` in `steps`, then again in `factor` times as many, and so on:
/// CosineAnnealingWarmRestarts (Loshchilov and Hutter 2017).
Schedule cosine_restarts(double rate, int64_t steps, int64_t factor = 1, double lowest = 0);
/// `schedules` one after the other, the next from each milestone on, where it begins at its step 0: SequentialLR.
Schedule in_turn(std::vector<Schedule> schedules, std::vector<int64_t> milestones);
/// `then`, of which the first `steps` are multiplied by (step + 1) / steps: a line from next to nothing.
Schedule warm_up(Schedule then, int64_t steps);

/// Parameters of one_cycle(), with torch's names and defaults.
struct OneCycle {
  double pct_start = 0.3;         ///< Share of the steps in which the rate rises.
  double div_factor = 25;         ///< It begins at the highest rate over this,
  double final_div_factor = 1e4;  ///< and ends at where it began over this.
};
/// Rises to `highest` and falls, both along half a cosine: OneCycleLR.
Schedule one_cycle(double highest, int64_t steps, const OneCycle& options = {});

/// The schedule called "constant", "step", "cosine", "one_cycle", each with a warm-up of `warm_up_steps` where that is
/// more than 0 (one_cycle has its own); ValueError with the nearest name for others. "step" falls to a tenth after each
/// third of the steps.
Schedule find_schedule(const std::string& name, double rate, int64_t steps, int64_t warm_up_steps = 0);

/// Multiplies the rate by `factor` when a metric has not fallen for more than `patience` calls: ReduceLROnPlateau.
class Plateau {
 public:
  explicit Plateau(double rate, double factor = 0.1, int64_t patience = 10, double threshold = 1e-4)
      : rate_(rate), factor_(factor), patience_(patience), threshold_(threshold) {}
  /// Takes the metric of an epoch and gives the rate of the next.
  double next(double metric);
  double rate() const { return rate_; }

 private:
  double rate_;
  double factor_;
  int64_t patience_;
  double threshold_;
  double best_ = std::numeric_limits<double>::infinity();
  int64_t bad_ = 0;
};

/// Sets the rate of the steps to come.
void set_learning_rate(StateStore store, double rate);

}  // namespace autograph::nn
