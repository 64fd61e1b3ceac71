// The formulas on vectors against their expressions, on every instruction set of this CPU. What only adds, multiplies,
// divides, compares and rounds has the same bits, where it has no fast form, but for the
// sign of a zero, which floor loses without vectors; the rest differs by some units in the last
// place, and below 1e-6 by what is lost where terms cancel.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autograph/random.h"
#include "backends/cpu/simd/elementwise/tile_ops.h"
#include "ops/elementwise/formula/formula_table.h"
#include "ops/sample.h"
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
      case ExprOp::tanh:
      case ExprOp::sin:
      case ExprOp::cos:
      case ExprOp::pow: return false;
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
      const bool exact = is_exact(formula);
      for (int64_t i = 0; i < values.count(); ++i) {
        const std::vector<float> x = values.at(i);
        ASSERT_TRUE(is_near(y[static_cast<size_t>(i)], evaluate(x), exact))
            << "formula " << index << " of " << formula.info.op << "(" << x[0] << ", " << (x.size() > 1 ? x[1] : 0)
            << ") = " << y[static_cast<size_t>(i)] << ", expected " << evaluate(x);
      }
    }
  });
}

// |y - expected| in units of the last place of the f32 nearest to `expected`.
double units_off(float y, double expected) {
  const float nearest = std::fabs(static_cast<float>(expected));
  const double unit = std::nextafter(nearest, 0.0F) == nearest ? std::numeric_limits<float>::denorm_min()
                                                               : nearest - std::nextafter(nearest, 0.0F);
  return std::fabs(y - expected) / unit;
}

template <class F>
std::vector<float> tiles_of(const std::vector<float>& x, const std::vector<float>& more = {}) {
  std::vector<float> y(x.size());
  simd::TileCall call{.operands = {}, .y = y.data(), .count = static_cast<int64_t>(x.size())};
  call.operands[0].data = x.data();
  call.operands[1].data = more.data();
  simd::tile_functions()[static_cast<size_t>(simd::kTileOp<F>)](call);
  return y;
}

TEST(FormulaTiles, ErfIsWithinTwoUnits) {
  std::vector<float> x{0.0F, -0.0F, 1.0F, -1.0F, 1e-40F, -1e-45F, 3.95F, -4.0F, 50.0F, 3e38F};
  for (int i = 0; i < 500'000; ++i) x.push_back((i % 2 ? 1.0F : -1.0F) * std::exp2(static_cast<float>(i) / 4e4F - 10));
  on_every_isa([&] {
    const std::vector<float> y = tiles_of<formulas::Erf>(x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = std::erf(static_cast<double>(x[i]));
      ASSERT_LE(units_off(y[i], expected), 2) << "erf(" << x[i] << ") = " << y[i] << ", expected " << expected;
      ASSERT_EQ(std::signbit(y[i]), std::signbit(x[i])) << x[i];
      ASSERT_LE(std::fabs(y[i]), 1) << x[i];
    }
  });
}

TEST(FormulaTiles, PowIsTheNearestNumberButForAHundredthOfAUnit) {
  Random random(31);
  std::vector<float> a, b;
  for (int i = 0; i < 300'000; ++i) {
    const auto exponent = static_cast<float>(draw(random, -12'000'000, 12'000'000)) / 1e6F;
    a.push_back(std::exp2(static_cast<float>(draw(random, -20'000'000, 20'000'000)) / 1e6F));
    b.push_back(i % 3 == 0 ? std::nearbyint(exponent) : exponent);
    if (i % 3 == 0 && i % 2 == 0) a.back() = -a.back();
  }
  on_every_isa([&] {
    const std::vector<float> y = tiles_of<formulas::Pow>(a, b);
    for (size_t i = 0; i < a.size(); ++i) {
      const double expected = std::pow(static_cast<double>(a[i]), static_cast<double>(b[i]));
      if (std::fabs(expected) > std::numeric_limits<float>::max()) {
        ASSERT_EQ(y[i], static_cast<float>(expected)) << a[i] << " ^ " << b[i];
      } else {
        ASSERT_LE(units_off(y[i], expected), 0.51) << a[i] << " ^ " << b[i] << " = " << y[i];
      }
    }
  });
}

TEST(FormulaTiles, PowOfSpecialNumbersIsTheLibrarys) {
  using Limits = std::numeric_limits<float>;
  const std::vector<float> special{0,
                                   1,
                                   2,
                                   0.5F,
                                   3,
                                   2.5F,
                                   Limits::max(),
                                   Limits::min(),
                                   1e-40F,
                                   1e-45F,
                                   8388607.5F,
                                   16777215.0F,
                                   16777216.0F,
                                   0.99999994F,
                                   1.0000001F,
                                   1.0F / 3,
                                   Limits::infinity(),
                                   Limits::quiet_NaN()};
  std::vector<float> a, b;
  for (size_t i = 0; i < 4 * special.size() * special.size(); ++i) {
    const float x = special[i / 4 % special.size()], y = special[i / 4 / special.size()];
    a.push_back(i % 2 ? -x : x);
    b.push_back(i / 2 % 2 ? -y : y);
  }
  on_every_isa([&] {
    const std::vector<float> y = tiles_of<formulas::Pow>(a, b);
    for (size_t i = 0; i < a.size(); ++i) {
      const float expected = std::pow(a[i], b[i]);
      SCOPED_TRACE(testing::Message() << a[i] << " ^ " << b[i]);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(y[i]));
      } else {
        EXPECT_FLOAT_EQ(y[i], expected);
        EXPECT_EQ(std::signbit(y[i]), std::signbit(expected));
      }
    }
  });
}

}  // namespace
}  // namespace autograph
