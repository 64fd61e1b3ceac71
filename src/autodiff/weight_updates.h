// From gradients to new weights: sums over runs, loss scaling, clipping, groups and averages, around the rules of the
// optimisers. The same for training graphs and for variables, which only keep what is remembered in other places.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "autograph/train.h"

namespace autograph {

/// Where updates keep what they remember from step to step.
class UpdateMemory {
 public:
  virtual ~UpdateMemory() = default;
  /// What is called so, `initial` before the first step.
  virtual Var state(const std::string& name, Tensor initial) = 0;
  /// Makes `value` what `state` is after the step; all readers in the step see the old one.
  virtual void update(const Var& state, const Var& value) = 0;
  /// What a weight is before the first step.
  virtual Tensor now(const Var& weight) = 0;
};

/// A weight that learns.
struct LearningWeight {
  std::string name;
  Var weight;
  Var gradient;
};

/// Throws ValueError where a number is out of its range.
void check_update_options(const UpdateOptions& options);
/// Throws ValueError, with the nearest name, where a group fits none of these weights: a typing error.
void check_groups(const UpdateOptions& options, const std::vector<std::string>& names);

/// One step, or the graph of all of them.
class WeightUpdates {
 public:
  WeightUpdates(const Optimizer& optimizer, const UpdateOptions& options, UpdateMemory& memory);

  /// What gradients are formed of.
  Var scaled(const Var& loss);
  /// Updates the weights by gradients of scaled(loss).
  UpdateStep make(std::vector<LearningWeight> weights);

 private:
  bool is_dynamic() const { return options_.loss_scale && options_.loss_scale->dynamic; }
  Var scale();
  void accumulate();
  void unscale();
  void clip();
  Var taken(const Var& now, const Var& before) const;
  Var rate_of(const WeightGroup* group);
  void update_weights();
  void average(const LearningWeight& of, const Var& now);
  void update_scale();

  const Optimizer& optimizer_;
  const UpdateOptions& options_;
  UpdateMemory& memory_;
  std::vector<LearningWeight> weights_;
  UpdateStep result_;
  std::unordered_map<const WeightGroup*, Var> rates_;
  // bool []; none: always true
  Var is_due_;     // Are gradients of enough runs together?
  Var is_finite_;  // Are they numbers?
  Var counts_;     // Both.
};

}  // namespace autograph
