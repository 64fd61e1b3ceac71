// The formulas on vectors against their expressions, on every instruction set of this CPU. What only adds, multiplies,
// divides, compares and rounds has the same bits, where it has no fast form, but for the
// sign of a zero, which floor loses without vectors; the rest differs by some units in the last
// place, and below 1e-6 by what is lost where terms cancel.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/cpu/simd/elementwise/tile_ops.h"
#include "ops/elementwise/formula/formula_table.h"
#include "support/kernels/formula_values.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

using formulas::ExprOp;

bool is_exact(const Formula& formula) {
  if (!same_form(formula.defining, formula.fast) || formula.info.op == "hard_sigmoid") return false;  // mul_add
  for (const auto& part : parts_in_order(formula.defining)) {
    switch (part.op()) {
      case ExprOp::exp:
      case ExprOp::expm1:
      case ExprOp::log:
      case ExprOp::log1p:
      case ExprOp::erf:
      case ExprOp::erfc:
      case ExprOp::tanh: return false;
      default: break;
    }
  }
  return true;
}

bool is_near(float y, float expected, bool exact) {
  if (std::isnan(expected)) return std::isnan(y);
  if (exact || std::isinf(expected)) return y == expected;
  return std::fabs(y - expected) <= 1e-6F + 4e-6F * std::fabs(expected);
}

std::vector<float> by_tiles(size_t index, const FormulaValues& values) {
  std::vector<float> y(static_cast<size_t>(values.count()));
  simd::TileCall call{.operands = {}, .y = y.data(), .count = values.count()};
  for (size_t k = 0; k < values.operands.size(); ++k) call.operands[k].data = values.operands[k].data();
  if (!values.parameters.empty()) call.p = values.parameters[0];
  if (values.parameters.size() > 1) call.q = values.parameters[1];
  simd::tile_functions()[index](call);
  return y;
}

TEST(FormulaTiles, MatchTheDefinition) {
  on_every_isa([] {
    for (size_t index = 0; index < all_formulas().size(); ++index) {
      const Formula& formula = all_formulas()[index];
      const FormulaValues values = draw_formula_values(formula, 100'003);
      const std::vector<float> y = by_tiles(index, values);
      const formulas::Evaluator<float> evaluate(formula.defining, variables_of(formula));
      for (int64_t i = 0; i < values.count(); ++i) {
        const std::vector<float> x = values.at(i);
        ASSERT_TRUE(is_near(y[static_cast<size_t>(i)], evaluate(x), is_exact(formula)))
            << "formula " << index << " of " << formula.info.op << "(" << x[0] << ", " << (x.size() > 1 ? x[1] : 0)
            << ") = " << y[static_cast<size_t>(i)] << ", expected " << evaluate(x);
      }
    }
  });
}

}  // namespace
}  // namespace autograph
