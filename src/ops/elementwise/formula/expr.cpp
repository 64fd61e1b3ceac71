#include "ops/elementwise/formula/expr.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "ops/elementwise/formula/formulas.h"

namespace autograph::formulas {

struct Expr::Node {
  ExprOp op;
  double number = 0;
  std::string name;
  std::vector<Expr> operands;
};

Expr::Expr(double number) : node_(std::make_shared<Node>(Node{ExprOp::number, number, "", {}})) {}

Expr::Expr(ExprOp op, std::vector<Expr> operands) {
  for (const Expr& operand : operands) AG_CHECK(operand.is_present(), "an operand that is nothing");
  node_ = std::make_shared<Node>(Node{op, 0, "", std::move(operands)});
}

Expr Expr::variable(std::string_view name) {
  Expr result;
  result.node_ = std::make_shared<Node>(Node{ExprOp::variable, 0, std::string(name), {}});
  return result;
}

ExprOp Expr::op() const { return node_->op; }
double Expr::number() const { return node_->number; }
const std::string& Expr::name() const { return node_->name; }
const std::vector<Expr>& Expr::operands() const { return node_->operands; }
bool Expr::is(double number) const { return is_present() && op() == ExprOp::number && node_->number == number; }

namespace {

bool same_leaf(const Expr& a, const Expr& b) {
  const bool same_number = std::bit_cast<uint64_t>(a.number()) == std::bit_cast<uint64_t>(b.number());
  return a.op() == b.op() && same_number && a.name() == b.name() && a.operands().size() == b.operands().size();
}

void visit(const Expr& part, std::unordered_set<const void*>& seen, std::vector<Expr>& order) {
  if (!seen.insert(part.identity()).second) return;
  for (const Expr& operand : part.operands()) visit(operand, seen, order);
  order.push_back(part);
}

const Expr* find(const Bindings& bindings, const std::string& name) {
  const auto at = std::find_if(bindings.begin(), bindings.end(), [&](const auto& b) { return b.first == name; });
  return at == bindings.end() ? nullptr : &at->second;
}

bool match_into(const Expr& pattern, const Expr& expression, Bindings& known) {
  if (pattern.op() == ExprOp::variable) {
    if (const Expr* bound = find(known, pattern.name())) return same_form(*bound, expression);
    known.emplace_back(pattern.name(), expression);
    return true;
  }
  if (!same_leaf(pattern, expression)) return false;
  for (size_t i = 0; i < pattern.operands().size(); ++i) {
    if (!match_into(pattern.operands()[i], expression.operands()[i], known)) return false;
  }
  return true;
}

}  // namespace

bool same_form(const Expr& a, const Expr& b) {
  if (a.identity() == b.identity()) return true;
  if (!a.is_present() || !b.is_present() || !same_leaf(a, b)) return false;
  return std::equal(a.operands().begin(), a.operands().end(), b.operands().begin(), same_form);
}

std::vector<Expr> parts_in_order(const Expr& root) {
  std::unordered_set<const void*> seen;
  std::vector<Expr> order;
  visit(root, seen, order);
  return order;
}

Expr substitute(const Expr& expression, const Bindings& bindings) {
  std::unordered_map<const void*, Expr> results;
  for (const Expr& part : parts_in_order(expression)) {
    if (part.op() == ExprOp::variable) {
      const Expr* bound = find(bindings, part.name());
      results[part.identity()] = bound ? *bound : part;
      continue;
    }
    std::vector<Expr> operands;
    for (const Expr& operand : part.operands()) operands.push_back(results.at(operand.identity()));
    results[part.identity()] = operands.empty() ? part : Expr(part.op(), std::move(operands));
  }
  return results.at(expression.identity());
}

std::optional<Bindings> match(const Expr& pattern, const Expr& expression, Bindings known) {
  if (!match_into(pattern, expression, known)) return std::nullopt;
  return known;
}

// ---- Evaluation ------------------------------------------------------------------------------------------------

namespace {

template <class T>
T apply_function(ExprOp op, T a, T b) {
  switch (op) {
    case ExprOp::abs: return abs(a);
    case ExprOp::sqrt: return sqrt(a);
    case ExprOp::exp: return exp(a);
    case ExprOp::expm1: return expm1(a);
    case ExprOp::log: return log(a);
    case ExprOp::log1p: return log1p_unit(a);
    case ExprOp::erf: return erf(a);
    case ExprOp::erfc: return erfc(a);
    case ExprOp::tanh: return tanh(a);
    case ExprOp::sin: return sin(a);
    case ExprOp::cos: return cos(a);
    case ExprOp::floor: return floor(a);
    case ExprOp::ceil: return ceil(a);
    case ExprOp::round: return round(a);
    case ExprOp::pow: return pow(a, b);
    default: AG_CHECK(false, "no function: operation {}", static_cast<int>(op)); return a;
  }
}

template <class T>
T apply_operation(ExprOp op, T a, T b, T c) {
  switch (op) {
    case ExprOp::add: return a + b;
    case ExprOp::sub: return a - b;
    case ExprOp::mul: return a * b;
    case ExprOp::div: return a / b;
    case ExprOp::neg: return -a;
    case ExprOp::max: return max_nan(a, b);
    case ExprOp::min: return min_nan(a, b);
    case ExprOp::less: return a < b;
    case ExprOp::less_or_equal: return a <= b;
    case ExprOp::equal: return a == b;
    case ExprOp::is_nan: return is_nan(a);
    case ExprOp::both: return both(a != 0, b != 0);
    case ExprOp::either: return either(a != 0, b != 0);
    case ExprOp::negated: return a == 0;
    case ExprOp::select: return select(a != 0, b, c);
    default: return apply_function(op, a, b);
  }
}

}  // namespace

template <class T>
Evaluator<T>::Evaluator(const Expr& expression, std::span<const std::string> variables) {
  std::unordered_map<const void*, uint32_t> places;
  for (const Expr& part : parts_in_order(expression)) {
    Step step{part.op(), static_cast<T>(part.number())};
    for (size_t i = 0; i < part.operands().size(); ++i) step.operands[i] = places.at(part.operands()[i].identity());
    if (part.op() == ExprOp::variable) {
      const auto at = std::find(variables.begin(), variables.end(), part.name());
      AG_CHECK(at != variables.end(), "no value for variable {}", part.name());
      step.operands[0] = static_cast<uint32_t>(at - variables.begin());
    }
    places[part.identity()] = static_cast<uint32_t>(steps_.size());
    steps_.push_back(step);
  }
  results_.resize(steps_.size());
}

template <class T>
T Evaluator<T>::operator()(std::span<const T> values) const {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    const auto& [a, b, c] = step.operands;
    if (step.op == ExprOp::number) {
      results_[i] = step.number;
    } else if (step.op == ExprOp::variable) {
      results_[i] = values[a];
    } else {
      results_[i] = apply_operation(step.op, results_[a], results_[b], results_[c]);
    }
  }
  return results_.back();
}

template class Evaluator<float>;
template class Evaluator<double>;

// ---- Building --------------------------------------------------------------------------------------------------

Expr operator+(const Expr& a, const Expr& b) { return Expr(ExprOp::add, {a, b}); }
Expr operator-(const Expr& a, const Expr& b) { return Expr(ExprOp::sub, {a, b}); }
Expr operator*(const Expr& a, const Expr& b) { return Expr(ExprOp::mul, {a, b}); }
Expr operator/(const Expr& a, const Expr& b) { return Expr(ExprOp::div, {a, b}); }
Expr operator-(const Expr& a) { return a.op() == ExprOp::number ? Expr(-a.number()) : Expr(ExprOp::neg, {a}); }
Expr operator<(const Expr& a, const Expr& b) { return Expr(ExprOp::less, {a, b}); }
Expr operator<=(const Expr& a, const Expr& b) { return Expr(ExprOp::less_or_equal, {a, b}); }
Expr operator>(const Expr& a, const Expr& b) { return b < a; }
Expr operator>=(const Expr& a, const Expr& b) { return b <= a; }
Expr operator==(const Expr& a, const Expr& b) { return Expr(ExprOp::equal, {a, b}); }
Expr operator!=(const Expr& a, const Expr& b) { return Expr(ExprOp::negated, {a == b}); }
Expr is_nan(const Expr& x) { return Expr(ExprOp::is_nan, {x}); }
Expr both(const Expr& a, const Expr& b) { return Expr(ExprOp::both, {a, b}); }
Expr either(const Expr& a, const Expr& b) { return Expr(ExprOp::either, {a, b}); }
Expr select(const Expr& condition, const Expr& a, const Expr& b) { return Expr(ExprOp::select, {condition, a, b}); }
Expr at_least(const Expr& x, const Expr& bound) { return select(x < bound, bound, x); }
Expr at_most(const Expr& x, const Expr& bound) { return select(x > bound, bound, x); }
Expr max_nan(const Expr& a, const Expr& b) { return b.is_present() ? Expr(ExprOp::max, {a, b}) : a; }
Expr min_nan(const Expr& a, const Expr& b) { return b.is_present() ? Expr(ExprOp::min, {a, b}) : a; }
Expr mul_add(const Expr& a, const Expr& b, const Expr& c) { return a * b + c; }
Expr abs(const Expr& x) { return Expr(ExprOp::abs, {x}); }
Expr sqrt(const Expr& x) { return Expr(ExprOp::sqrt, {x}); }
Expr exp(const Expr& x) { return Expr(ExprOp::exp, {x}); }
Expr exp_nonpositive(const Expr& x) { return exp(x); }
Expr expm1(const Expr& x) { return Expr(ExprOp::expm1, {x}); }
Expr expm1_nonpositive(const Expr& x) { return expm1(x); }
Expr log(const Expr& x) { return Expr(ExprOp::log, {x}); }
Expr log1p_unit(const Expr& x) { return Expr(ExprOp::log1p, {x}); }
Expr erf(const Expr& x) { return Expr(ExprOp::erf, {x}); }
Expr erfc(const Expr& x) { return Expr(ExprOp::erfc, {x}); }
Expr tanh(const Expr& x) { return Expr(ExprOp::tanh, {x}); }
Expr sin(const Expr& x) { return Expr(ExprOp::sin, {x}); }
Expr cos(const Expr& x) { return Expr(ExprOp::cos, {x}); }
Expr floor(const Expr& x) { return Expr(ExprOp::floor, {x}); }
Expr ceil(const Expr& x) { return Expr(ExprOp::ceil, {x}); }
Expr round(const Expr& x) { return Expr(ExprOp::round, {x}); }
Expr pow(const Expr& a, const Expr& b) { return Expr(ExprOp::pow, {a, b}); }

}  // namespace autograph::formulas
