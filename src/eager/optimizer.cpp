// The optimisers of training graphs, for variables.
#include <algorithm>
#include <map>
#include <set>

#include "autodiff/optimizers.h"
#include "autodiff/weight_updates.h"
#include "autograph/eager.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "base/check.h"
#include "eager/tape/tape.h"

namespace autograph {
namespace {

constexpr const char* kStatePrefix = "optimizer/";

// Variables; of integers, too, which count.
class VariableMemory final : public UpdateMemory {
 public:
  Var state(const std::string& name, Tensor initial) override {
    Var& known = states_[name];
    if (known.is_valid()) return known;
    const auto restored = restored_.find(name);
    if (restored != restored_.end()) {
      check_restored(name, restored->second, initial);
      initial = std::move(restored->second);
      restored_.erase(restored);
    }
    known = eager(std::move(initial));
    static_cast<Eager&>(known.eager()).make_variable();
    return known;
  }
  void update(const Var& state, const Var& value) override { updates_.emplace_back(state, value); }
  Tensor now(const Var& weight) override { return static_cast<const Eager&>(weight.eager()).tensor(); }

  void end_step() {
    for (const auto& [state, value] : updates_) assign(state, value);
    updates_.clear();
  }
  const std::map<std::string, Var>& states() const { return states_; }

  // States that are there take their elements now, others when somebody asks for them.
  void restore(const NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) {
      const auto known = states_.find(name);
      if (known != states_.end()) check_restored(name, tensor, now(known->second));
    }
    restored_.clear();
    for (const auto& [name, tensor] : tensors) {
      const auto known = states_.find(name);
      if (known != states_.end()) assign(known->second, eager(tensor.clone()));
      if (known == states_.end()) restored_.emplace(name, tensor.clone());
    }
  }

 private:
  static void check_restored(const std::string& name, const Tensor& tensor, const Tensor& expected) {
    AG_CHECK_USER(tensor.dtype() == expected.dtype(), TypeError, "[optimizer] restore '{}': expected {}, got {}", name,
                  to_string(expected.dtype()), to_string(tensor.dtype()));
    AG_CHECK_USER(tensor.dims() == expected.dims(), ShapeError, "[optimizer] restore '{}': expected {}, got {}", name,
                  to_string(expected.dims()), to_string(tensor.dims()));
  }

  std::map<std::string, Var> states_;
  std::map<std::string, Tensor> restored_;  // of states that nobody has asked for yet
  std::vector<std::pair<Var, Var>> updates_;
};

void check_variables(const NamedVars& variables) {
  AG_CHECK_USER(!variables.empty(), ValueError, "[optimizer] variables: expected at least one (is all frozen?)");
  std::set<std::string_view> names;
  for (const auto& [name, each] : variables) {
    const bool is_variable = each.is_eager() && static_cast<const Eager&>(each.eager()).is_variable();
    AG_CHECK_USER(is_variable, ValueError, "[optimizer] variable '{}': expected what variable() gave, got {}", name,
                  each.is_valid() ? to_string(each.type()) : "none");
    AG_CHECK_USER(names.insert(name).second, ValueError,
                  "[optimizer] variables: expected names of their own, got '{}' twice", name);
  }
}

NamedVars numbered(const std::vector<Var>& variables) {
  NamedVars named;
  for (const Var& each : variables) named.emplace_back(std::to_string(named.size()), each);
  return named;
}

std::vector<std::string> names_of(const NamedVars& variables) {
  std::vector<std::string> names;
  for (const auto& [name, each] : variables) names.push_back(name);
  return names;
}

}  // namespace

class EagerOptimizer::Impl {
 public:
  Impl(NamedVars variables, const Optimizer& optimizer, const UpdateOptions& options)
      : optimizer_(optimizer), options_(options), variables_(std::move(variables)) {
    check_optimizer(optimizer_);
    check_update_options(options_);
    check_variables(variables_);
    check_groups(options_, names_of(variables_));
    updates();  // rate and count are there from the beginning
  }

  Var scaled(const Var& loss) { return updates().scaled(loss); }

  void step() {
    const NoGrad off;
    const ProvenanceScope scope("optimizer");
    std::vector<LearningWeight> list;
    for (const auto& [name, each] : variables_) {
      const Var slope = gradient(each);
      if (slope.is_valid()) list.push_back({name, each, slope});
    }
    updates().make(std::move(list));
    memory_.end_step();
  }

  void clear_gradients() {
    for (const auto& [name, each] : variables_) clear_gradient(each);
  }

  const std::map<std::string, Var>& states() const { return memory_.states(); }
  void restore(const NamedTensors& tensors) {
    NamedTensors own;
    for (const auto& each : tensors) {
      if (each.first.starts_with(kStatePrefix) || each.first.starts_with(kAveragePrefix)) own.push_back(each);
    }
    const bool has_step =
        std::any_of(own.begin(), own.end(), [](const auto& each) { return each.first == "optimizer/step"; });
    AG_CHECK_USER(has_step, ValueError,
                  "[optimizer] restore: expected \"optimizer/step\" among {} tensors, got none (states() has it)",
                  tensors.size());
    memory_.restore(own);
  }
  const std::string& name_of(size_t index) const { return variables_.at(index).first; }

 private:
  WeightUpdates updates() { return {optimizer_, options_, memory_}; }

  Optimizer optimizer_;
  UpdateOptions options_;
  NamedVars variables_;
  VariableMemory memory_;
};

EagerOptimizer::EagerOptimizer(NamedVars variables, const Optimizer& optimizer, const UpdateOptions& options)
    : impl_(std::make_unique<Impl>(std::move(variables), optimizer, options)) {}
EagerOptimizer::EagerOptimizer(const std::vector<Var>& variables, const Optimizer& optimizer,
                               const UpdateOptions& options)
    : EagerOptimizer(numbered(variables), optimizer, options) {}
EagerOptimizer::~EagerOptimizer() = default;
EagerOptimizer::EagerOptimizer(EagerOptimizer&&) noexcept = default;
EagerOptimizer& EagerOptimizer::operator=(EagerOptimizer&&) noexcept = default;

Var EagerOptimizer::scaled(const Var& loss) { return impl_->scaled(loss); }
void EagerOptimizer::step() { impl_->step(); }
void EagerOptimizer::clear_gradients() { impl_->clear_gradients(); }
void EagerOptimizer::set_learning_rate(double rate) { assign(learning_rate(), eager(Tensor::scalar(rate))); }
void EagerOptimizer::restore(const NamedTensors& tensors) { impl_->restore(tensors); }
Var EagerOptimizer::learning_rate() const { return impl_->states().at("optimizer/learning_rate"); }
Var EagerOptimizer::count() const { return impl_->states().at("optimizer/step"); }

// "optimizer/KIND/NAME"
NamedVars EagerOptimizer::remembered(size_t index) const {
  const std::string first = kStatePrefix, last = "/" + impl_->name_of(index);
  NamedVars found;
  for (const auto& [name, value] : impl_->states()) {
    const size_t slash = name.find('/', first.size());
    if (slash == std::string::npos || !name.starts_with(first) || name.substr(slash) != last) continue;
    found.emplace_back(name.substr(first.size(), slash - first.size()), value);
  }
  return found;
}

NamedVars EagerOptimizer::states() const { return {impl_->states().begin(), impl_->states().end()}; }

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
  Var length = sqrt(total);
  const Var part = limit / (length + kPyTorchsEpsilon);
  const Var factor = min({part, scalar_like(part, 1)});
  for (const Var& each : variables) {
    const Var slope = gradient(each);
    if (slope.is_valid()) set_gradient(each, slope * cast(factor, slope.dtype()));
  }
  return length;
}

void clip_gradient_values(const std::vector<Var>& variables, double limit) {
  AG_CHECK_USER(limit > 0, ValueError, "[clip_gradient_values] limit: expected more than 0, got {}", limit);
  const NoGrad off;
  for (const Var& each : variables) {
    const Var slope = gradient(each);
    if (slope.is_valid()) set_gradient(each, clip(slope, scalar_like(slope, -limit), scalar_like(slope, limit)));
  }
}

}  // namespace autograph
