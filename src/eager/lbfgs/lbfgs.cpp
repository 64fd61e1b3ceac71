#include "autograph/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <utility>

#include "autograph/eager.h"
#include "base/check.h"
#include "eager/lbfgs/line_search.h"
#include "eager/tape/tape.h"

namespace autograph {
namespace {

using Vector = std::vector<double>;  // all elements of all variables

double dot(const Vector& a, const Vector& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

double largest(const Vector& vector) {
  double result = 0;
  for (const double element : vector) result = std::max(result, std::fabs(element));
  return result;
}

// to += scale * vector
void add(Vector& to, double scale, const Vector& vector) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += scale * vector[i];
}

Vector scaled(const Vector& vector, double scale) {
  Vector result(vector);
  for (double& element : result) element *= scale;
  return result;
}

// The inverse of the second derivative, as steps and changes of the gradient tell it.
class Curvature {
 public:
  explicit Curvature(size_t length) : length_(length) {}

  // Changes against the direction of the step would make it indefinite.
  void add_pair(Vector step, Vector change) {
    const double along = dot(change, step);
    if (along <= 1e-10) return;
    if (pairs_.size() == length_) pairs_.pop_front();
    scale_ = along / dot(change, change);
    pairs_.push_back({std::move(step), std::move(change), 1 / along});
  }

  // Where it leads down from `gradient`: the recursion of two loops.
  Vector direction(const Vector& gradient) const {
    Vector result = scaled(gradient, -1);
    Vector shares(pairs_.size());
    for (size_t i = pairs_.size(); i-- > 0;) {
      shares[i] = dot(pairs_[i].step, result) * pairs_[i].inverse;
      add(result, -shares[i], pairs_[i].change);
    }
    result = scaled(result, scale_);
    for (size_t i = 0; i < pairs_.size(); ++i) {
      add(result, shares[i] - dot(pairs_[i].change, result) * pairs_[i].inverse, pairs_[i].step);
    }
    return result;
  }

 private:
  struct Pair {
    Vector step, change;
    double inverse;  // of their product
  };
  size_t length_;
  std::deque<Pair> pairs_;
  double scale_ = 1;
};

void check_options(const LbfgsOptions& options) {
  const auto check = [](const char* name, double value, double least) {
    AG_CHECK_USER(value >= least && std::isfinite(value), ValueError, "[lbfgs] {}: expected {} or more, got {}", name,
                  least, value);
  };
  check("learning_rate", options.learning_rate, 0);
  check("max_iterations", static_cast<double>(options.max_iterations), 1);
  check("max_evaluations", static_cast<double>(options.max_evaluations), 0);
  check("gradient_tolerance", options.gradient_tolerance, 0);
  check("change_tolerance", options.change_tolerance, 0);
  check("history", static_cast<double>(options.history), 1);
}

void check_variables(const std::vector<Var>& variables) {
  AG_CHECK_USER(!variables.empty(), ValueError, "[lbfgs] variables: expected at least one");
  for (size_t i = 0; i < variables.size(); ++i) {
    const Var& each = variables[i];
    const bool is_variable = each.is_eager() && static_cast<const Eager&>(each.eager()).is_variable();
    AG_CHECK_USER(is_variable && (each.dtype() == DType::f32 || each.dtype() == DType::f64), ValueError,
                  "[lbfgs] variable {}: expected what variable() gave, of f32 or f64, got {}", i,
                  each.is_valid() ? to_string(each.type()) : "none");
  }
}

}  // namespace

class Lbfgs::Impl {
 public:
  Impl(std::vector<Var> variables, const LbfgsOptions& options)
      : variables_(std::move(variables)), options_(options), curvature_(static_cast<size_t>(options.history)) {
    check_options(options);
    check_variables(variables_);
  }

  double step(const std::function<Var()>& loss) {
    const int64_t enough = evaluations_ + max_evaluations();
    now_ = evaluate(loss);
    AG_CHECK_USER(std::isfinite(now_.value), ValueError, "[lbfgs] loss: expected a number, got {}", now_.value);
    const double first = now_.value;
    for (int64_t i = 1; i <= options_.max_iterations && largest(now_.gradient) > options_.gradient_tolerance; ++i) {
      if (!iterate(loss, i == options_.max_iterations, enough) || evaluations_ >= enough) break;
    }
    return first;
  }

  int64_t evaluations() const { return evaluations_; }
  void set_learning_rate(double rate) {
    options_.learning_rate = rate;
    check_options(options_);
  }

 private:
  int64_t max_evaluations() const {
    return options_.max_evaluations > 0 ? options_.max_evaluations : options_.max_iterations * 5 / 4;
  }

  // One direction; false where it is enough. Behind the last step of a call the next one looks at the loss.
  bool iterate(const std::function<Var()>& loss, bool is_last, int64_t enough) {
    const bool is_first = direction_.empty();
    if (!is_first) {
      Vector change = now_.gradient;
      add(change, -1, gradient_before_);
      curvature_.add_pair(scaled(direction_, length_), std::move(change));
    }
    direction_ = curvature_.direction(now_.gradient);
    gradient_before_ = now_.gradient;
    length_ = options_.learning_rate;
    if (is_first) length_ *= std::min(1.0, 1 / sum_of_magnitudes(now_.gradient));
    now_.slope = dot(now_.gradient, direction_);
    if (now_.slope > -options_.change_tolerance) return false;

    const double before = now_.value;
    const Vector from = all_elements();
    if (options_.strong_wolfe) {
      now_.at = 0;
      now_ = strong_wolfe([&](double at) { return evaluate_at(loss, from, at); }, now_, length_,
                          options_.change_tolerance / largest(direction_), enough - evaluations_);
      length_ = now_.at;
      move(from, length_);
    } else {
      move(from, length_);
      if (!is_last) now_ = evaluate(loss);
    }
    return length_ * largest(direction_) > options_.change_tolerance &&
           std::fabs(now_.value - before) >= options_.change_tolerance;
  }

  LinePoint evaluate_at(const std::function<Var()>& loss, const Vector& from, double at) {
    move(from, at);
    LinePoint point = evaluate(loss);
    point.at = at;
    point.slope = dot(point.gradient, direction_);
    return point;
  }

  LinePoint evaluate(const std::function<Var()>& loss) {
    ++evaluations_;
    for (const Var& each : variables_) clear_gradient(each);
    const Var value = loss();
    backward(value);
    LinePoint point{.value = item(value)};
    for (const Var& each : variables_) {
      const Var slope = gradient(each);
      const Vector part =
          slope.is_valid() ? elements(slope).to_f64() : Vector(static_cast<size_t>(elements(each).num_elements()));
      point.gradient.insert(point.gradient.end(), part.begin(), part.end());
      clear_gradient(each);
    }
    return point;
  }

  static double sum_of_magnitudes(const Vector& vector) {
    return std::accumulate(vector.begin(), vector.end(), 0.0, [](double sum, double x) { return sum + std::fabs(x); });
  }
  Vector all_elements() const {
    Vector all;
    for (const Var& each : variables_) {
      const Vector part = elements(each).to_f64();
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  // Variables become from + at * direction.
  void move(const Vector& from, double at) {
    Vector all = from;
    add(all, at, direction_);
    auto begin = all.cbegin();
    for (const Var& each : variables_) {
      const Dims dims = elements(each).dims();
      const auto end = begin + elements(each).num_elements();
      assign(each, eager(each.dtype() == DType::f64 ? Tensor::of<double>(dims, {begin, end})
                                                    : Tensor::of<float>(dims, {begin, end})));
      begin = end;
    }
  }

  std::vector<Var> variables_;
  LbfgsOptions options_;
  Curvature curvature_;
  LinePoint now_;
  Vector direction_;
  Vector gradient_before_;
  double length_ = 0;
  int64_t evaluations_ = 0;
};

Lbfgs::Lbfgs(std::vector<Var> variables, const LbfgsOptions& options)
    : impl_(std::make_unique<Impl>(std::move(variables), options)) {}
Lbfgs::~Lbfgs() = default;
Lbfgs::Lbfgs(Lbfgs&&) noexcept = default;
Lbfgs& Lbfgs::operator=(Lbfgs&&) noexcept = default;

double Lbfgs::step(const std::function<Var()>& loss) { return impl_->step(loss); }
int64_t Lbfgs::evaluations() const { return impl_->evaluations(); }
void Lbfgs::set_learning_rate(double rate) { impl_->set_learning_rate(rate); }

}  // namespace autograph
