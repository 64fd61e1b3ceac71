// Simplification and derivatives of expressions.
#include <cmath>
#include <numbers>
#include <unordered_map>

#include "base/check.h"
#include "ops/elementwise/formula/expr.h"

namespace autograph::formulas {
namespace {

bool is_number(const Expr& x) { return x.op() == ExprOp::number; }

// a + b, a * b ... with what is known of zeros and ones left out.
Expr simple_sum(const Expr& a, const Expr& b) {
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  if (b.op() == ExprOp::neg) return a - b.operands()[0];
  return a + b;
}

Expr simple_difference(const Expr& a, const Expr& b) {
  if (b.is(0)) return a;
  if (a.is(0)) return -b;
  return same_form(a, b) ? Expr(0) : a - b;
}

Expr simple_product(const Expr& a, const Expr& b) {
  if (a.is(0) || b.is(0)) return Expr(0);
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  if (a.is(-1)) return -b;
  if (b.is(-1)) return -a;
  return a * b;
}

Expr simple_quotient(const Expr& a, const Expr& b) {
  if (a.is(0)) return Expr(0);
  return b.is(1) ? a : a / b;
}

Expr simple_select(const Expr& condition, const Expr& a, const Expr& b) {
  if (is_number(condition)) return condition.is(0) ? b : a;
  return same_form(a, b) ? a : select(condition, a, b);
}

// One part whose operands are simple already.
Expr simple_part(ExprOp op, const std::vector<Expr>& x) {
  bool all_numbers = true;
  for (const Expr& operand : x) all_numbers = all_numbers && is_number(operand);
  Expr part(op, x);
  if (all_numbers) {
    const double value = Evaluator<double>(part, {})({});
    return std::isfinite(value) ? Expr(value) : part;
  }
  switch (op) {
    case ExprOp::add: return simple_sum(x[0], x[1]);
    case ExprOp::sub: return simple_difference(x[0], x[1]);
    case ExprOp::mul: return simple_product(x[0], x[1]);
    case ExprOp::div: return simple_quotient(x[0], x[1]);
    case ExprOp::neg: return x[0].op() == ExprOp::neg ? x[0].operands()[0] : -x[0];
    case ExprOp::select: return simple_select(x[0], x[1], x[2]);
    case ExprOp::pow: return x[1].is(1) ? x[0] : x[1].is(0) ? Expr(1) : part;
    default: return part;
  }
}

// d part / dx for a function of one operand u, divided by du / dx; `y` is the part itself.
Expr slope(const Expr& y, const Expr& u) {
  const Expr one(1), two(2);
  Expr zero(0);
  Expr bell = Expr(2 * std::numbers::inv_sqrtpi) * exp(-(u * u));
  switch (y.op()) {
    case ExprOp::neg: return Expr(-1);
    case ExprOp::abs: return select(u < zero, Expr(-1), select(zero < u, one, zero));
    case ExprOp::sqrt: return one / (two * y);
    case ExprOp::exp: return y;
    case ExprOp::expm1: return exp(u);
    case ExprOp::log: return one / u;
    case ExprOp::log1p: return one / (one + u);
    case ExprOp::erf: return bell;
    case ExprOp::erfc: return -bell;
    case ExprOp::tanh: return one - y * y;
    case ExprOp::sin: return cos(u);
    case ExprOp::cos: return -sin(u);
    default: return zero;  // steps and truth values
  }
}

Expr power_derivative(const Expr& y, const Expr& a, const Expr& b, const Expr& da, const Expr& db) {
  const Expr of_base = da.is(0) ? da : b * pow(a, b - Expr(1)) * da;
  return db.is(0) ? of_base : of_base + y * log(a) * db;
}

// d y / dx from the derivatives of its operands.
Expr part_derivative(const Expr& y, const std::vector<Expr>& d) {
  const std::vector<Expr>& x = y.operands();
  switch (y.op()) {
    case ExprOp::add: return d[0] + d[1];
    case ExprOp::sub: return d[0] - d[1];
    case ExprOp::mul: return d[0] * x[1] + x[0] * d[1];
    case ExprOp::div: return d[1].is(0) ? d[0] / x[1] : (d[0] - y * d[1]) / x[1];
    case ExprOp::max: return select(x[0] < x[1], d[1], d[0]);
    case ExprOp::min: return select(x[1] < x[0], d[1], d[0]);
    case ExprOp::select: return select(x[0], d[1], d[2]);
    case ExprOp::pow: return power_derivative(y, x[0], x[1], d[0], d[1]);
    default: return slope(y, x[0]) * d[0];
  }
}

}  // namespace

Expr simplified(const Expr& expression) {
  std::unordered_map<const void*, Expr> results;
  for (const Expr& part : parts_in_order(expression)) {
    std::vector<Expr> operands;
    for (const Expr& operand : part.operands()) operands.push_back(results.at(operand.identity()));
    results[part.identity()] = operands.empty() ? part : simple_part(part.op(), operands);
  }
  return results.at(expression.identity());
}

Expr derivative(const Expr& expression, std::string_view variable) {
  std::unordered_map<const void*, Expr> results;
  for (const Expr& part : parts_in_order(expression)) {
    Expr& result = results[part.identity()];
    if (part.operands().empty()) {
      result = Expr(part.op() == ExprOp::variable && part.name() == variable ? 1 : 0);
      continue;
    }
    std::vector<Expr> d;
    for (const Expr& operand : part.operands()) d.push_back(results.at(operand.identity()));
    result = simplified(part_derivative(part, d));
  }
  return simplified(results.at(expression.identity()));
}

}  // namespace autograph::formulas
