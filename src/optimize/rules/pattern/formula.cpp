#include "optimize/rules/pattern/formula.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace autograph {
namespace {

constexpr size_t kMaxTerms = 8;

bool same_sum(const Sum& a, const Sum& b);

bool same_base(const Factor& a, const Factor& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == Factor::Kind::call) return a.call == b.call;
  if (a.kind == Factor::Kind::group) return same_sum(*a.group, *b.group);
  return a.id == b.id;
}

bool same_factors(const Term& a, const Term& b) {
  if (a.factors.size() != b.factors.size()) return false;
  return std::all_of(a.factors.begin(), a.factors.end(), [&](const Factor& factor) {
    return std::any_of(b.factors.begin(), b.factors.end(), [&](const Factor& other) {
      return factor.exponent == other.exponent && same_base(factor, other);
    });
  });
}

bool same_sum(const Sum& a, const Sum& b) {
  if (a.terms.size() != b.terms.size()) return false;
  for (size_t i = 0; i < a.terms.size(); ++i) {
    if (a.terms[i].number != b.terms[i].number || !same_factors(a.terms[i], b.terms[i])) return false;
  }
  return true;
}

void multiply(Term& term, const Factor& factor) {
  for (auto it = term.factors.begin(); it != term.factors.end(); ++it) {
    if (!same_base(*it, factor)) continue;
    it->exponent += factor.exponent;
    if (it->exponent == 0) term.factors.erase(it);
    return;
  }
  term.factors.push_back(factor);
}

void add(Sum& sum, Term term) {
  for (auto it = sum.terms.begin(); it != sum.terms.end(); ++it) {
    if (!same_factors(*it, term)) continue;
    it->number += term.number;
    if (it->number == 0) sum.terms.erase(it);
    return;
  }
  if (term.number != 0) sum.terms.push_back(std::move(term));
}

}  // namespace

Sum Sum::of(double number) {
  Sum sum;
  if (number != 0) sum.terms.push_back({number, {}});
  return sum;
}

Sum Sum::of(Factor factor) {
  Sum sum;
  sum.terms.push_back({1, {}});
  sum.terms.back().factors.push_back(std::move(factor));
  return sum;
}

Sum plus(Sum a, double factor, const Sum& b) {
  for (const Term& term : b.terms) add(a, {factor * term.number, term.factors});
  return a;
}

std::optional<Sum> times(const Sum& a, const Sum& b) {
  if (a.terms.size() * b.terms.size() > kMaxTerms) return std::nullopt;
  Sum product;
  for (const Term& left : a.terms) {
    for (const Term& right : b.terms) {
      Term term{left.number * right.number, left.factors};
      for (const Factor& factor : right.factors) multiply(term, factor);
      add(product, std::move(term));
    }
  }
  return product;
}

std::optional<Sum> power(const Sum& a, double exponent, uint32_t value) {
  if (exponent == 1) return a;
  const bool is_number = a.terms.empty() || (a.terms.size() == 1 && a.terms[0].factors.empty());
  if (is_number) {
    const double number = std::pow(a.terms.empty() ? 0 : a.terms[0].number, exponent);
    return std::isfinite(number) ? std::optional(Sum::of(number)) : std::nullopt;
  }
  // (x^2)^(1/2) is |x|: roots go into x alone.
  const bool is_single = a.terms.size() == 1;
  const bool is_base =
      is_single && a.terms[0].number == 1 && a.terms[0].factors.size() == 1 && a.terms[0].factors[0].exponent == 1;
  if (is_base || (is_single && exponent == std::floor(exponent))) {
    Sum result = a;
    Term& term = result.terms[0];
    term.number = std::pow(term.number, exponent);
    for (Factor& factor : term.factors) factor.exponent *= exponent;
    return result;
  }
  Factor group{Factor::Kind::group, value, nullptr, std::make_shared<const Sum>(a), exponent};
  return Sum::of(std::move(group));
}

double value_of(const PatternFormula& formula, const std::vector<double>& parameters) {
  double sum = 0;
  for (const Term& term : formula.sum.terms) {
    double product = term.number;
    for (const Factor& factor : term.factors) {
      AG_CHECK(factor.kind == Factor::Kind::parameter && factor.id < parameters.size(), "a formula of numbers reads {}",
               factor.id);
      product *= std::pow(parameters[factor.id], factor.exponent);
    }
    sum += product;
  }
  return sum;
}

}  // namespace autograph
