#include "ops/recurrent/activation_functions.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "autograph/ops/activation.h"
#include "base/check.h"
#include "base/text/lower_case.h"

namespace autograph {
namespace {

Var scaled_tanh(const Var& x, float alpha, float beta) { return tanh(x * beta) * alpha; }

struct Entry {
  std::string_view name;
  ActivationParameters defaults;
  double (*apply)(double x, double alpha, double beta);
  Var (*build)(const Var& x, float alpha, float beta);
};

const std::array<Entry, 11>& entries() {
  static const std::array<Entry, 11> table{{
      {"affine",
       {1.0, 0.0},
       [](double x, double alpha, double beta) { return alpha * x + beta; },
       [](const Var& x, float alpha, float beta) { return x * alpha + beta; }},
      {"elu",
       {1.0, {}},
       [](double x, double alpha, double) { return x < 0 ? alpha * std::expm1(x) : x; },
       [](const Var& x, float alpha, float) { return elu(x, alpha); }},
      {"hardsigmoid",
       {0.2, 0.5},
       [](double x, double alpha, double beta) { return std::clamp(alpha * x + beta, 0.0, 1.0); },
       [](const Var& x, float alpha, float beta) { return hard_sigmoid(x, alpha, beta); }},
      {"leakyrelu",
       {0.01, {}},
       [](double x, double alpha, double) { return x < 0 ? alpha * x : x; },
       [](const Var& x, float alpha, float) { return leaky_relu(x, alpha); }},
      {"relu",
       {},
       [](double x, double, double) { return x < 0 ? 0.0 : x; },
       [](const Var& x, float, float) { return relu(x); }},
      {"scaledtanh",
       {1.0, 1.0},
       [](double x, double alpha, double beta) { return alpha * std::tanh(beta * x); },
       scaled_tanh},
      {"sigmoid",
       {},
       [](double x, double, double) { return 1 / (1 + std::exp(-x)); },
       [](const Var& x, float, float) { return sigmoid(x); }},
      {"softplus",
       {},
       [](double x, double, double) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); },
       [](const Var& x, float, float) { return softplus(x); }},
      {"softsign",
       {},
       [](double x, double, double) { return x / (1 + std::fabs(x)); },
       [](const Var& x, float, float) { return softsign(x); }},
      {"tanh",
       {},
       [](double x, double, double) { return std::tanh(x); },
       [](const Var& x, float, float) { return tanh(x); }},
      {"thresholdedrelu",
       {1.0, {}},
       [](double x, double alpha, double) { return x > alpha ? x : 0.0; },
       [](const Var& x, float alpha, float) { return thresholded_relu(x, alpha); }},
  }};
  return table;
}

const Entry* find_entry(std::string_view name) {
  const std::string lower = lower_case(name);
  for (const Entry& entry : entries()) {
    if (entry.name == lower) return &entry;
  }
  return nullptr;
}

}  // namespace

std::optional<ActivationParameters> find_activation(std::string_view name) {
  const Entry* entry = find_entry(name);
  if (!entry) return std::nullopt;
  return entry->defaults;
}

Activation make_activation(std::string_view name, const ActivationParameters& parameters) {
  const Entry* entry = find_entry(name);
  AG_CHECK(entry, "activation '{}'", name);
  return [apply = entry->apply, alpha = parameters.alpha.value_or(0), beta = parameters.beta.value_or(0)](double x) {
    return apply(x, alpha, beta);
  };
}

Var apply_activation(std::string_view name, const ActivationParameters& parameters, const Var& x) {
  const Entry* entry = find_entry(name);
  AG_CHECK(entry, "activation '{}'", name);
  return entry->build(x, static_cast<float>(parameters.alpha.value_or(0)),
                      static_cast<float>(parameters.beta.value_or(0)));
}

}  // namespace autograph
