#include "autodiff/optimizers.h"

#include <cmath>

#include "autograph/ops/elementwise.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"
#include "ops/index/row_gradient.h"

namespace autograph {
namespace {

// A factor in f64 [] in the dtype of a weight.
Var factor(const Var& number, const Var& weight) { return cast(number, weight.dtype()); }

// from + part * (to - from)
Var blend(const Var& from, const Var& to, double part) { return from + part * (to - from); }

Var square_average(const Var& average, const Var& gradient, double beta) {
  return average * beta + (1 - beta) * (gradient * gradient);
}

Var with_decay(const Var& gradient, const Var& weight, double decay) {
  return decay == 0 ? gradient : gradient + decay * weight;
}

// The weight after decay beside the gradient.
Var decayed(const WeightUpdate& u, double decay) {
  return decay == 0 ? u.weight : u.weight * factor(1 - u.rate * decay, u.weight);
}

Var next(const Sgd& sgd, WeightUpdate& u) {
  Var g = with_decay(u.gradient, u.weight, sgd.weight_decay);
  if (sgd.momentum != 0) {
    const Var old = u.remember("momentum");
    Var now = old * sgd.momentum + (1 - sgd.dampening) * g;
    // The first gradient is taken whole.
    if (sgd.dampening != 0) now = where(equal(u.count, scalar_like(u.count, 1)), g, now);
    u.remembered.emplace_back(old, now);
    g = sgd.nesterov ? g + sgd.momentum * now : now;
  }
  return u.weight - factor(u.rate, u.weight) * g;
}

// By which an average that began with zeros is too small.
Var correction(const WeightUpdate& u, double beta) { return 1 - pow(scalar_like(u.count, beta), u.count); }

struct AdamNumbers {
  double beta1, beta2, epsilon;
  bool amsgrad;
};

Var next_by_moments(const AdamNumbers& adam, const Var& weight, const Var& gradient, WeightUpdate& u) {
  const Var old_average = u.remember("exp_avg"), old_square = u.remember("exp_avg_sq");
  const Var average = blend(old_average, gradient, 1 - adam.beta1);
  Var square = square_average(old_square, gradient, adam.beta2);
  u.remembered.emplace_back(old_average, average);
  u.remembered.emplace_back(old_square, square);
  if (adam.amsgrad) {
    const Var old_most = u.remember("max_exp_avg_sq");
    square = max({old_most, square});
    u.remembered.emplace_back(old_most, square);
  }
  const Var denominator = sqrt(square) / factor(sqrt(correction(u, adam.beta2)), weight) + adam.epsilon;
  return weight - factor(u.rate / correction(u, adam.beta1), weight) * (average / denominator);
}

// torch.optim.SparseAdam: what was not read stays as it is, and the epsilon is added to the root as it is remembered.
Var next_of_rows(const Adam& adam, const RowGradient& gradient, WeightUpdate& u) {
  const Var old_average = u.remember("exp_avg"), old_square = u.remember("exp_avg_sq");
  const Var average = blend(gradient.read(old_average), gradient.rows, 1 - adam.beta1);
  const Var square = blend(gradient.read(old_square), gradient.rows * gradient.rows, 1 - adam.beta2);
  u.remembered.emplace_back(old_average, gradient.write(old_average, average));
  u.remembered.emplace_back(old_square, gradient.write(old_square, square));
  const Var rate = u.rate * sqrt(correction(u, adam.beta2)) / correction(u, adam.beta1);
  const Var step = factor(rate, u.weight) * (average / (sqrt(square) + adam.epsilon));
  return gradient.write(u.weight, gradient.read(u.weight) - step);
}

std::optional<RowGradient> rows_of(const WeightUpdate& u) {
  AG_CHECK_USER(!u.gradient.is_eager(), UnsupportedError,
                "[train] lazy: expected a graph, which tells the rows that were read, got elements of a gradient "
                "(minimize() and training_graph() make graphs; Adam without lazy updates all rows)");
  return row_gradient(u.gradient);
}

Var next(const Adam& adam, WeightUpdate& u) {
  const auto rows = adam.lazy ? rows_of(u) : std::nullopt;
  if (rows) return next_of_rows(adam, *rows, u);
  return next_by_moments({adam.beta1, adam.beta2, adam.epsilon, adam.amsgrad}, u.weight,
                         with_decay(u.gradient, u.weight, adam.weight_decay), u);
}

Var next(const AdamW& adam, WeightUpdate& u) {
  return next_by_moments({adam.beta1, adam.beta2, adam.epsilon, adam.amsgrad}, decayed(u, adam.weight_decay),
                         u.gradient, u);
}

Var next(const RmsProp& rms, WeightUpdate& u) {
  const Var g = with_decay(u.gradient, u.weight, rms.weight_decay);
  const Var old_square = u.remember("square_avg");
  const Var square = square_average(old_square, g, rms.alpha);
  u.remembered.emplace_back(old_square, square);
  Var spread = square;
  if (rms.centered) {
    const Var old_average = u.remember("grad_avg");
    const Var average = blend(old_average, g, 1 - rms.alpha);
    u.remembered.emplace_back(old_average, average);
    spread = square - average * average;
  }
  Var step = g / (sqrt(spread) + rms.epsilon);
  if (rms.momentum > 0) {
    const Var old = u.remember("momentum");
    step = old * rms.momentum + step;
    u.remembered.emplace_back(old, step);
  }
  return u.weight - factor(u.rate, u.weight) * step;
}

Var next(const Adagrad& adagrad, WeightUpdate& u) {
  const Var g = with_decay(u.gradient, u.weight, adagrad.weight_decay);
  const Var old_sum = u.remember("sum", adagrad.initial_accumulator);
  const Var sum = old_sum + g * g;
  u.remembered.emplace_back(old_sum, sum);
  const Var rate = u.rate / (1 + (u.count - 1) * adagrad.learning_rate_decay);
  return u.weight - factor(rate, u.weight) * (g / (sqrt(sum) + adagrad.epsilon));
}

Var next(const Lion& lion, WeightUpdate& u) {
  const Var old = u.remember("exp_avg");
  const Var direction = sign(blend(old, u.gradient, 1 - lion.beta1));
  u.remembered.emplace_back(old, blend(old, u.gradient, 1 - lion.beta2));
  return decayed(u, lion.weight_decay) - factor(u.rate, u.weight) * direction;
}

Var next(const Adadelta& adadelta, WeightUpdate& u) {
  const Var g = with_decay(u.gradient, u.weight, adadelta.weight_decay);
  const Var old_square = u.remember("square_avg"), old_delta = u.remember("acc_delta");
  const Var square = square_average(old_square, g, adadelta.rho);
  const Var delta = sqrt(old_delta + adadelta.epsilon) / sqrt(square + adadelta.epsilon) * g;
  u.remembered.emplace_back(old_square, square);
  u.remembered.emplace_back(old_delta, square_average(old_delta, delta, adadelta.rho));
  return u.weight - factor(u.rate, u.weight) * delta;
}

Var next(const Adamax& adamax, WeightUpdate& u) {
  const Var g = with_decay(u.gradient, u.weight, adamax.weight_decay);
  const Var old_average = u.remember("exp_avg"), old_most = u.remember("exp_inf");
  const Var average = blend(old_average, g, 1 - adamax.beta1);
  const Var most = max({old_most * adamax.beta2, abs(g) + adamax.epsilon});
  u.remembered.emplace_back(old_average, average);
  u.remembered.emplace_back(old_most, most);
  return u.weight - factor(u.rate / correction(u, adamax.beta1), u.weight) * (average / most);
}

// Both moments after the update, and the weight and gradient after decay. Of NAdam and RAdam.
struct Moments {
  Var weight, gradient, average, square;
};

template <class AnyAdam>
Moments next_moments(const AnyAdam& adam, WeightUpdate& u) {
  const double decay = adam.weight_decay;
  Moments moments;
  moments.weight = adam.decoupled_weight_decay ? decayed(u, decay) : u.weight;
  moments.gradient = adam.decoupled_weight_decay ? u.gradient : with_decay(u.gradient, u.weight, decay);
  const Var old_average = u.remember("exp_avg"), old_square = u.remember("exp_avg_sq");
  moments.average = blend(old_average, moments.gradient, 1 - adam.beta1);
  moments.square = square_average(old_square, moments.gradient, adam.beta2);
  u.remembered.emplace_back(old_average, moments.average);
  u.remembered.emplace_back(old_square, moments.square);
  return moments;
}

Var next(const NAdam& nadam, WeightUpdate& u) {
  const Moments now = next_moments(nadam, u);
  const auto momentum = [&](const Var& count) {
    return nadam.beta1 * (1 - 0.5 * pow(scalar_like(count, 0.96), count * nadam.momentum_decay));
  };
  const Var mu = momentum(u.count), next_mu = momentum(u.count + 1);
  const Var old_product = u.remember_number("mu_product", 1);
  const Var product = old_product * cast(mu, DType::f32);
  u.remembered.emplace_back(old_product, product);
  const Var wide = cast(product, DType::f64);
  const Var denominator = sqrt(now.square / factor(correction(u, nadam.beta2), u.weight)) + nadam.epsilon;
  const Var of_gradient = u.rate * (1 - mu) / (1 - wide), of_average = u.rate * next_mu / (1 - wide * next_mu);
  return now.weight - factor(of_gradient, u.weight) * (now.gradient / denominator) -
         factor(of_average, u.weight) * (now.average / denominator);
}

// The mean square adapts rates once it is worth more than five gradients.
Var next(const RAdam& radam, WeightUpdate& u) {
  constexpr double kEnough = 5;
  const Moments now = next_moments(radam, u);
  const auto number = [&](const Var& value) { return factor(value, u.weight); };
  const Var plain = now.average / number(correction(u, radam.beta1)) * number(u.rate);
  const double most = 2 / (1 - radam.beta2) - 1;
  if (most <= kEnough) return now.weight - plain;
  const Var part = correction(u, radam.beta2);
  const Var worth = most - 2 * u.count * (1 - part) / part;
  const Var is_enough = worth > kEnough;
  const Var known = where(is_enough, worth, scalar_like(worth, kEnough));  // no root of what is below 0
  const Var rectified = sqrt((known - 4) * (known - 2) * most / ((most - 4) * (most - 2) * known));
  const Var adapted = number(sqrt(part)) / (sqrt(now.square) + radam.epsilon);
  return now.weight - where(is_enough, plain * adapted * number(rectified), plain);
}

void check_range(const char* what, double value, double low, double below) {
  AG_CHECK_USER(value >= low && value < below, ValueError, "[train] {}: expected {} or more and less than {}, got {}",
                what, low, below, value);
}

void check_not_negative(const char* what, double value) {
  AG_CHECK_USER(value >= 0 && std::isfinite(value), ValueError, "[train] {}: expected 0 or more, got {}", what, value);
}

template <class AnyAdam>
void check_adam(const AnyAdam& adam) {
  check_range("beta1", adam.beta1, 0, 1);
  check_range("beta2", adam.beta2, 0, 1);
  check_not_negative("epsilon", adam.epsilon);
}

void check_numbers(const Sgd& sgd) {
  check_not_negative("momentum", sgd.momentum);
  AG_CHECK_USER(!sgd.nesterov || (sgd.momentum > 0 && sgd.dampening == 0), ValueError,
                "[train] nesterov: expected a momentum and no dampening, got momentum {} and dampening {}",
                sgd.momentum, sgd.dampening);
}
void check_numbers(const Adam& adam) {
  check_adam(adam);
  AG_CHECK_USER(!adam.lazy || (adam.weight_decay == 0 && !adam.amsgrad), ValueError,
                "[train] lazy: expected neither weight decay nor amsgrad, which change rows that were not read, got "
                "weight decay {} and amsgrad {}",
                adam.weight_decay, adam.amsgrad);
}
void check_numbers(const AdamW& adam) { check_adam(adam); }
void check_numbers(const RmsProp& rms) {
  check_not_negative("alpha", rms.alpha);
  check_not_negative("epsilon", rms.epsilon);
  check_not_negative("momentum", rms.momentum);
}
void check_numbers(const Adagrad& adagrad) {
  check_not_negative("learning_rate_decay", adagrad.learning_rate_decay);
  check_not_negative("initial_accumulator", adagrad.initial_accumulator);
  check_not_negative("epsilon", adagrad.epsilon);
}
void check_numbers(const Adadelta& adadelta) {
  check_range("rho", adadelta.rho, 0, 1);
  check_not_negative("epsilon", adadelta.epsilon);
}
void check_numbers(const Adamax& adamax) { check_adam(adamax); }
void check_numbers(const NAdam& nadam) {
  check_adam(nadam);
  check_not_negative("momentum_decay", nadam.momentum_decay);
}
void check_numbers(const RAdam& radam) { check_adam(radam); }
void check_numbers(const Lion& lion) {
  check_range("beta1", lion.beta1, 0, 1);
  check_range("beta2", lion.beta2, 0, 1);
}

}  // namespace

Var updated_weight(const Optimizer& optimizer, WeightUpdate& update) {
  return std::visit([&](const auto& kind) { return next(kind, update); }, optimizer);
}

double learning_rate(const Optimizer& optimizer) {
  return std::visit([](const auto& kind) { return kind.learning_rate; }, optimizer);
}

void check_optimizer(const Optimizer& optimizer) {
  std::visit(
      [](const auto& kind) {
        check_not_negative("learning_rate", kind.learning_rate);
        check_not_negative("weight_decay", kind.weight_decay);
        check_numbers(kind);
      },
      optimizer);
}

bool is_lazy(const Optimizer& optimizer) {
  const auto* adam = std::get_if<Adam>(&optimizer);
  return adam && adam->lazy;
}

namespace {

const std::vector<std::pair<std::string, Optimizer>>& known_optimizers() {
  static const std::vector<std::pair<std::string, Optimizer>> known{{"sgd", Sgd{}},
                                                                    {"adam", Adam{}},
                                                                    {"adamw", AdamW{}},
                                                                    {"rmsprop", RmsProp{}},
                                                                    {"adagrad", Adagrad{}},
                                                                    {"lion", Lion{}},
                                                                    {"adadelta", Adadelta{}},
                                                                    {"adamax", Adamax{}},
                                                                    {"nadam", NAdam{}},
                                                                    {"radam", RAdam{}},
                                                                    {"sparse_adam", Adam{.lazy = true}}};
  return known;
}

}  // namespace

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const auto& [name, optimizer] : known_optimizers()) names.push_back(name);
  return names;
}

Optimizer find_optimizer(const std::string& name) {
  for (const auto& [known, optimizer] : known_optimizers()) {
    if (known == name) return optimizer;
  }
  const std::vector<std::string> names = optimizer_names();
  throw ValueError(
      fmt::format("[train] optimizer: expected {}, got '{}'{}", join(names, ", "), name, did_you_mean(name, names)));
}

}  // namespace autograph
