#include "ops/elementwise/formula/formula_vjp.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

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

// The derivative of a formula with respect to one operand.
struct Slope {
  explicit Slope(const Expr& of) : value(of), parts(parts_in_order(of)) {}
  Expr value;
  std::vector<Expr> parts;  // operands before what reads them, as they are lowered
};

// What is known of an op's formula with these operands and attributes: define by run asks again at each visit of a
// node.
class Slopes {
 public:
  Slopes() = default;
  explicit Slopes(const VjpContext& context) : attributes_(context.attributes()), slopes_(context.num_inputs()) {
    std::vector<Expr> operands;
    for (size_t slot = 0; slot < context.num_inputs(); ++slot) {
      operands.push_back(context.has_input(slot) ? Expr::variable(variable_name(slot)) : Expr());
    }
    formula_ = expression_of(context.op(), context.attributes(), operands);
    AG_CHECK(formula_.is_present(), "[{}] gradient: no formula", context.op().name);
  }

  bool has(const Attributes& attributes) const {
    return formula_.is_present() && autograph::equal(attributes, attributes_);
  }
  const Expr& formula() const { return formula_; }
  const Slope& of(size_t slot) {
    std::optional<Slope>& slope = slopes_[slot];
    if (!slope) slope.emplace(derivative(formula_, variable_name(slot)));
    return *slope;
  }

 private:
  Attributes attributes_;
  Expr formula_;
  std::vector<std::optional<Slope>> slopes_;
};

// Of the thread's last call with this op and such operands.
Slopes& slopes_of(const VjpContext& context) {
  thread_local std::unordered_map<const OpDef*, std::unordered_map<uint64_t, Slopes>> known;
  uint64_t operands = context.num_inputs();
  for (size_t slot = 0; slot < context.num_inputs(); ++slot)
    operands = operands * 2 + (context.has_input(slot) ? 1 : 0);
  Slopes& slopes = known[&context.op()][operands];
  if (!slopes.has(context.attributes())) slopes = Slopes(context);
  return slopes;
}

// Makes nodes of expressions, of equal parts once. Truth values are bool in the graph.
class Lowering {
 public:
  Lowering(VjpContext& context, const Expr& result) : context_(context), result_(result) {}

  Var lower(const Slope& slope) {
    for (const Expr& part : slope.parts) {
      Var& value = values_[part.identity()];
      if (!value.is_valid()) value = lower_part(part);
    }
    return values_.at(slope.value.identity());
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
      case ExprOp::sin: return sin(x[0]);
      case ExprOp::cos: return cos(x[0]);
      case ExprOp::pow: return pow(x[0], x[1]);
      default: break;
    }
    context_.unsupported("its derivative has a part that is no op");
    return {};
  }

  VjpContext& context_;
  const Expr& result_;
  std::unordered_map<const void*, Var> values_;
};

}  // namespace

void formula_vjp(VjpContext& context) {
  Slopes& slopes = slopes_of(context);
  Lowering lowering(context, slopes.formula());
  for (size_t slot = 0; slot < context.num_inputs(); ++slot) {
    if (!context.wants(slot)) continue;
    const Slope& slope = slopes.of(slot);
    if (slope.value.is(0)) {
      context.set_none(slot);
    } else if (slope.value.is(1)) {
      context.set(slot, context.gy(0));
    } else if (slope.value.is(-1)) {
      context.set(slot, neg(context.gy(0)));
    } else {
      context.set(slot, context.gy(0) * lowering.lower(slope));
    }
  }
}

}  // namespace autograph
