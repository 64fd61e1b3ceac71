// The optimisers of training graphs, for variables.
#include <functional>
#include <map>

#include "autodiff/optimizers.h"
#include "autograph/eager.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "base/check.h"
#include "eager/tape/tape.h"
#include "ops/real_values.h"

namespace autograph {

class EagerOptimizer::Impl {
 public:
  Impl(std::vector<Var> variables, const Optimizer& optimizer)
      : optimizer_(optimizer),
        variables_(std::move(variables)),
        memory_(variables_.size()),
        rate_(variable(Tensor::scalar(autograph::learning_rate(optimizer)))),
        count_(variable(Tensor::scalar(0.0))) {
    check_optimizer(optimizer);
    for (const Var& each : variables_) {
      const bool is_variable = each.is_eager() && static_cast<const Eager&>(each.eager()).is_variable();
      AG_CHECK_USER(is_variable, ValueError, "[optimizer] variables: expected what variable() gave, got {}",
                    each.is_valid() ? to_string(each.type()) : "none");
    }
  }

  void step() {
    const NoGrad off;
    assign(count_, count_ + 1);
    for (size_t i = 0; i < variables_.size(); ++i) {
      const Var slope = gradient(variables_[i]);
      if (slope.is_valid()) update(i, slope);
    }
  }

  void clear_gradients() {
    for (const Var& each : variables_) clear_gradient(each);
  }

  const Var& rate() const { return rate_; }
  const Var& count() const { return count_; }
  const std::map<std::string, Var>& memory(size_t i) const { return memory_.at(i); }

 private:
  void update(size_t i, const Var& slope) {
    WeightUpdate change{variables_[i], slope, rate_, count_};
    change.memory = [this, i](const std::string& kind, double initial) { return remember(i, kind, initial); };
    const Var weight = updated_weight(optimizer_, change);
    for (const auto& [before, now] : change.remembered) assign(before, now);
    assign(variables_[i], weight);
  }

  Var remember(size_t i, const std::string& kind, double initial) {
    Var& place = memory_[i][kind];
    if (place.is_valid()) return place;
    const Type& type = variables_[i].type();
    Tensor filled = Tensor::zeros(type.dtype(), type.shape().static_dims());
    if (initial != 0) {
      store_reals(std::vector<double>(static_cast<size_t>(filled.num_elements()), initial), filled.view());
    }
    place = variable(std::move(filled));
    return place;
  }

  Optimizer optimizer_;
  std::vector<Var> variables_;
  std::vector<std::map<std::string, Var>> memory_;  // by variable and kind
  Var rate_, count_;
};

EagerOptimizer::EagerOptimizer(std::vector<Var> variables, const Optimizer& optimizer)
    : impl_(std::make_unique<Impl>(std::move(variables), optimizer)) {}
EagerOptimizer::~EagerOptimizer() = default;
EagerOptimizer::EagerOptimizer(EagerOptimizer&&) noexcept = default;
EagerOptimizer& EagerOptimizer::operator=(EagerOptimizer&&) noexcept = default;

void EagerOptimizer::step() { impl_->step(); }
void EagerOptimizer::clear_gradients() { impl_->clear_gradients(); }
Var EagerOptimizer::learning_rate() const { return impl_->rate(); }
Var EagerOptimizer::count() const { return impl_->count(); }

std::vector<std::pair<std::string, Var>> EagerOptimizer::remembered(size_t index) const {
  const auto& memory = impl_->memory(index);
  return {memory.begin(), memory.end()};
}

Var clip_gradients(const std::vector<Var>& variables, double limit) {
  AG_CHECK_USER(limit > 0, ValueError, "[clip_gradients] limit: expected more than 0, got {}", limit);
  const NoGrad off;
  Var total;
  for (const Var& each : variables) {
    const Var slope = gradient(each);
    if (!slope.is_valid()) continue;
    const Var square = reduce_sum_square(cast(slope, DType::f64), {}, false);
    total = total.is_valid() ? total + square : square;
  }
  AG_CHECK_USER(total.is_valid(), ValueError, "[clip_gradients] variables: expected one with a gradient");
  constexpr double kPyTorchsEpsilon = 1e-6;
  const Var length = sqrt(total);
  const Var part = limit / (length + kPyTorchsEpsilon);
  const Var factor = min({part, scalar_like(part, 1)});
  for (const Var& each : variables) {
    const Var slope = gradient(each);
    if (slope.is_valid()) set_gradient(each, slope * cast(factor, slope.dtype()));
  }
  return length;
}

}  // namespace autograph
