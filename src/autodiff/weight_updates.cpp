#include "autodiff/weight_updates.h"

#include <algorithm>

#include "autodiff/name_pattern.h"
#include "autodiff/optimizers.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "ops/real_values.h"

namespace autograph {
namespace {

void check_positive(const char* what, const std::optional<double>& value) {
  AG_CHECK_USER(!value || *value > 0, ValueError, "[train] {}: expected more than 0, got {}", what, *value);
}

// At least f32.
Var as_wide(const Var& x) { return x.dtype() == DType::f64 ? x : cast(x, DType::f32); }

Tensor filled(const Dims& dims, DType dtype, double value) {
  Tensor tensor = Tensor::zeros(dtype, dims);
  if (value != 0) {
    store_reals(std::vector<double>(static_cast<size_t>(tensor.num_elements()), value), tensor.view());
  }
  return tensor;
}

// The group of a weight, or null.
const WeightGroup* group_of(const UpdateOptions& options, const std::string& name) {
  const auto found = std::find_if(options.groups.begin(), options.groups.end(),
                                  [&](const WeightGroup& group) { return fits(group.weights, name); });
  return found == options.groups.end() ? nullptr : &*found;
}

Optimizer optimizer_of(const WeightGroup* group, const Optimizer& optimizer) {
  Optimizer own = optimizer;
  if (group && group->weight_decay) {
    std::visit([&](auto& kind) { kind.weight_decay = *group->weight_decay; }, own);
  }
  return own;
}

// What makes gradients of all rows out of those of some.
void check_lazy(const UpdateOptions& options) {
  AG_CHECK_USER(options.accumulate == 1, ValueError,
                "[train] lazy: expected no accumulation, which makes gradients of all rows, got accumulate {}",
                options.accumulate);
  for (const WeightGroup& group : options.groups) {
    AG_CHECK_USER(group.weight_decay.value_or(0) == 0, ValueError,
                  "[train] lazy: expected no weight decay, got {} for the group '{}'", *group.weight_decay,
                  group.weights);
  }
}

}  // namespace

void check_update_options(const UpdateOptions& options) {
  check_positive("clip_norm", options.clip_norm);
  check_positive("clip_value", options.clip_value);
  AG_CHECK_USER(options.accumulate >= 1, ValueError, "[train] accumulate: expected 1 or more, got {}",
                options.accumulate);
  AG_CHECK_USER(!options.average || (*options.average >= 0 && *options.average < 1), ValueError,
                "[train] average: expected 0 or more and less than 1, got {}", *options.average);
  for (const WeightGroup& group : options.groups) {
    AG_CHECK_USER(group.rate_factor >= 0, ValueError, "[train] group '{}': expected a rate factor of 0 or more, got {}",
                  group.weights, group.rate_factor);
    AG_CHECK_USER(!group.weight_decay || *group.weight_decay >= 0, ValueError,
                  "[train] group '{}': expected a weight decay of 0 or more, got {}", group.weights,
                  *group.weight_decay);
  }
  if (!options.loss_scale) return;
  check_positive("loss_scale", options.loss_scale->initial);
  AG_CHECK_USER(options.loss_scale->growth_interval >= 1, ValueError,
                "[train] growth_interval: expected 1 or more, got {}", options.loss_scale->growth_interval);
}

void check_groups(const UpdateOptions& options, const std::vector<std::string>& names) {
  for (const WeightGroup& group : options.groups) {
    const bool used =
        std::any_of(names.begin(), names.end(), [&](const std::string& name) { return fits(group.weights, name); });
    AG_CHECK_USER(used, ValueError, "[train] group: no weight is called '{}'{}", group.weights,
                  did_you_mean(group.weights, names));
  }
}

WeightUpdates::WeightUpdates(const Optimizer& optimizer, const UpdateOptions& options, UpdateMemory& memory)
    : optimizer_(optimizer), options_(options), memory_(memory) {
  if (is_lazy(optimizer)) check_lazy(options);
  result_.learning_rate = memory_.state("optimizer/learning_rate", Tensor::scalar(learning_rate(optimizer)));
  result_.step = memory_.state("optimizer/step", Tensor::scalar(int64_t{0}));
}

Var WeightUpdates::scale() {
  return memory_.state("optimizer/loss_scale", Tensor::scalar(static_cast<float>(options_.loss_scale->initial)));
}

Var WeightUpdates::scaled(const Var& loss) { return options_.loss_scale ? loss * cast(scale(), loss.dtype()) : loss; }

UpdateStep WeightUpdates::make(std::vector<LearningWeight> weights) {
  weights_ = std::move(weights);
  accumulate();
  unscale();
  clip();
  update_weights();
  memory_.update(result_.step, taken(result_.step + 1, result_.step));
  update_scale();
  return result_;
}

// Sums up the mean of the gradients of several runs, of which the last is due.
void WeightUpdates::accumulate() {
  if (options_.accumulate == 1) return;
  const Var run = memory_.state("optimizer/run", Tensor::scalar(int64_t{0}));
  const Var last = scalar_like(run, static_cast<double>(options_.accumulate - 1));
  is_due_ = equal(run, last);
  memory_.update(run, where(is_due_, scalar_like(run, 0), run + 1));
  for (LearningWeight& each : weights_) {
    const Var sum = memory_.state("optimizer/gradient/" + each.name,
                                  filled(each.weight.shape().static_dims(), each.weight.dtype(), 0));
    each.gradient = sum + each.gradient / static_cast<double>(options_.accumulate);
    memory_.update(sum, where(is_due_, scalar_like(sum, 0), each.gradient));
  }
}

void WeightUpdates::unscale() {
  counts_ = is_due_;
  if (!options_.loss_scale) return;
  const Var factor = scale();
  Var bad;
  for (LearningWeight& each : weights_) {
    each.gradient = each.gradient / cast(factor, each.gradient.dtype());
    if (!is_dynamic()) continue;
    const Var wide = as_wide(each.gradient);
    const Var count = reduce_sum(cast(logical_or(is_nan(wide), is_inf(wide)), DType::f32), {}, false);
    bad = bad.is_valid() ? bad + count : count;
  }
  if (!bad.is_valid()) return;
  is_finite_ = equal(bad, scalar_like(bad, 0));
  counts_ = counts_.is_valid() ? logical_and(counts_, is_finite_) : is_finite_;
}

void WeightUpdates::clip() {
  if (options_.clip_value) {
    for (LearningWeight& each : weights_) {
      each.gradient = autograph::clip(each.gradient, scalar_like(each.gradient, -*options_.clip_value),
                                      scalar_like(each.gradient, *options_.clip_value));
    }
  }
  if (!options_.clip_norm || weights_.empty()) return;
  std::vector<Var> squares;
  DType dtype = DType::f32;
  for (const LearningWeight& each : weights_) {
    squares.push_back(reduce_sum_square(as_wide(each.gradient), {}, false));
    if (squares.back().dtype() == DType::f64) dtype = DType::f64;
  }
  for (Var& square : squares) square = cast(square, dtype);
  result_.gradient_norm = sqrt(squares.size() == 1 ? squares[0] : sum(squares));
  constexpr double kPyTorchsEpsilon = 1e-6;
  const Var part = *options_.clip_norm / (result_.gradient_norm + kPyTorchsEpsilon);
  const Var factor = min({part, scalar_like(part, 1)});
  for (LearningWeight& each : weights_) each.gradient = each.gradient * cast(factor, each.gradient.dtype());
}

// `now` in a run that updates, else `before`.
Var WeightUpdates::taken(const Var& now, const Var& before) const {
  return counts_.is_valid() ? where(counts_, now, before) : now;
}

// Computed once for all weights of a group.
Var WeightUpdates::rate_of(const WeightGroup* group) {
  if (!group || group->rate_factor == 1) return result_.learning_rate;
  Var& rate = rates_[group];
  if (!rate.is_valid()) rate = result_.learning_rate * group->rate_factor;
  return rate;
}

void WeightUpdates::update_weights() {
  const Var count = cast(result_.step + 1, DType::f64);
  for (const LearningWeight& each : weights_) {
    const ProvenanceScope scope(each.name);
    const WeightGroup* group = group_of(options_, each.name);
    WeightUpdate change{each.weight, each.gradient, rate_of(group), count};
    change.memory = [&](const std::string& kind, const Dims& dims, DType dtype, double initial) {
      return memory_.state("optimizer/" + kind + "/" + each.name, filled(dims, dtype, initial));
    };
    const Var now = taken(updated_weight(optimizer_of(group, optimizer_), change), each.weight);
    memory_.update(each.weight, now);
    for (const auto& [before, after] : change.remembered) memory_.update(before, taken(after, before));
    if (options_.average) average(each, now);
  }
}

void WeightUpdates::average(const LearningWeight& of, const Var& now) {
  const double decay = *options_.average;
  const Var before = memory_.state(kAveragePrefix + of.name, memory_.now(of.weight));
  memory_.update(before, taken(before * decay + now * (1 - decay), before));
}

// Doubled after many finite steps in a row, halved after one that is not; PyTorch's numbers.
void WeightUpdates::update_scale() {
  if (!is_finite_.is_valid()) return;
  const auto interval = static_cast<double>(options_.loss_scale->growth_interval);
  const Var factor = scale(), good = memory_.state("optimizer/finite_steps", Tensor::scalar(int64_t{0}));
  const Var grows = equal(good + 1, scalar_like(good, interval));
  const Var next_good = where(logical_and(is_finite_, logical_not(grows)), good + 1, scalar_like(good, 0));
  const Var next_factor = where(is_finite_, where(grows, factor * 2, factor), factor * 0.5);
  const auto if_due = [&](const Var& now, const Var& before) {
    return is_due_.is_valid() ? where(is_due_, now, before) : now;
  };
  memory_.update(good, if_due(next_good, good));
  memory_.update(factor, if_due(next_factor, factor));
}

}  // namespace autograph
