#include "ops/recurrent/activation_functions.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "base/check.h"

namespace autograph {
namespace {

struct Entry {
  std::string_view name;
  ActivationParameters defaults;
  double (*apply)(double x, double alpha, double beta);
};

const std::array<Entry, 11>& entries() {
  static const std::array<Entry, 11> table{{
      {"affine", {1.0, 0.0}, [](double x, double alpha, double beta) { return alpha * x + beta; }},
      {"elu", {1.0, {}}, [](double x, double alpha, double) { return x < 0 ? alpha * std::expm1(x) : x; }},
      {"hardsigmoid",
       {0.2, 0.5},
       [](double x, double alpha, double beta) { return std::min(1.0, std::max(0.0, alpha * x + beta)); }},
      {"leakyrelu", {0.01, {}}, [](double x, double alpha, double) { return x < 0 ? alpha * x : x; }},
      {"relu", {}, [](double x, double, double) { return x < 0 ? 0.0 : x; }},
      {"scaledtanh", {1.0, 1.0}, [](double x, double alpha, double beta) { return alpha * std::tanh(beta * x); }},
      {"sigmoid", {}, [](double x, double, double) { return 1 / (1 + std::exp(-x)); }},
      {"softplus", {}, [](double x, double, double) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }},
      {"softsign", {}, [](double x, double, double) { return x / (1 + std::fabs(x)); }},
      {"tanh", {}, [](double x, double, double) { return std::tanh(x); }},
      {"thresholdedrelu", {1.0, {}}, [](double x, double alpha, double) { return x > alpha ? x : 0.0; }},
  }};
  return table;
}

const Entry* find_entry(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
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

}  // namespace autograph
