#include "ops/elementwise/formula/formula_vjp.h"

#include <unordered_map>

#include <fmt/core.h>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "base/check.h"
#include "ops/elementwise/formula/formula_table.h"

namespace autograph {
namespace {

using formulas::Expr;
using formulas::ExprOp;

std::string variable_name(size_t slot) { return fmt::format("x{}", slot); }

// Makes nodes of expressions, of equal parts once. Truth values are bool in the graph.
class Lowering {
 public:
  Lowering(VjpContext& context, Expr result) : context_(context), result_(std::move(result)) {}

  Var lower(const Expr& root) {
    for (const Expr& part : parts_in_order(root)) {
      Var& value = values_[part.identity()];
      if (!value.is_valid()) value = lower_part(part);
    }
    return values_.at(root.identity());
  }

 private:
  Var lower_part(const Expr& part) {
    if (part.op() == ExprOp::variable) return context_.in(static_cast<size_t>(part.name()[1] - '0'));
    if (part.op() == ExprOp::number) return scalar_like(context_.in(0), part.number());
    if (same_form(part, result_)) return context_.out(0);
    std::vector<Var> x;
    for (const Expr& operand : part.operands()) x.push_back(values_.at(operand.identity()));
    return apply_part(part.op(), x);
  }

  Var apply_part(ExprOp op, const std::vector<Var>& x) {
    switch (op) {
      case ExprOp::add: return add(x[0], x[1]);
      case ExprOp::sub: return sub(x[0], x[1]);
      case ExprOp::mul: return mul(x[0], x[1]);
      case ExprOp::div: return div(x[0], x[1]);
      case ExprOp::neg: return neg(x[0]);
      case ExprOp::max: return max({x[0], x[1]});
      case ExprOp::min: return min({x[0], x[1]});
      case ExprOp::less: return less(x[0], x[1]);
      case ExprOp::less_or_equal: return less_or_equal(x[0], x[1]);
      case ExprOp::equal: return equal(x[0], x[1]);
      case ExprOp::is_nan: return is_nan(x[0]);
      case ExprOp::both: return logical_and(x[0], x[1]);
      case ExprOp::either: return logical_or(x[0], x[1]);
      case ExprOp::negated: return logical_not(x[0]);
      case ExprOp::select: return where(x[0], x[1], x[2]);
      case ExprOp::abs: return abs(x[0]);
      case ExprOp::sqrt: return sqrt(x[0]);
      case ExprOp::exp: return exp(x[0]);
      case ExprOp::log: return log(x[0]);
      case ExprOp::erf: return erf(x[0]);
      case ExprOp::erfc: return 1 - erf(x[0]);
      case ExprOp::tanh: return tanh(x[0]);
      case ExprOp::pow: return pow(x[0], x[1]);
      default: break;
    }
    context_.unsupported("its derivative has a part that is no op");
    return {};
  }

  VjpContext& context_;
  Expr result_;
  std::unordered_map<const void*, Var> values_;
};

}  // namespace

void formula_vjp(VjpContext& context) {
  std::vector<Expr> operands;
  for (size_t slot = 0; slot < context.num_inputs(); ++slot) {
    operands.push_back(context.has_input(slot) ? Expr::variable(variable_name(slot)) : Expr());
  }
  const Expr formula = expression_of(context.op(), context.attributes(), operands);
  AG_CHECK(formula.is_present(), "[{}] gradient: no formula", context.op().name);
  Lowering lowering(context, formula);
  for (size_t slot = 0; slot < context.num_inputs(); ++slot) {
    if (!context.wants(slot)) continue;
    const Expr slope = derivative(formula, variable_name(slot));
    if (slope.is(0)) {
      context.set_none(slot);
    } else if (slope.is(1)) {
      context.set(slot, context.gy(0));
    } else if (slope.is(-1)) {
      context.set(slot, neg(context.gy(0)));
    } else {
      context.set(slot, context.gy(0) * lowering.lower(slope));
    }
  }
}

}  // namespace autograph
