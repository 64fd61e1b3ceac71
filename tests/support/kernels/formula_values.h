// Operands for formulas: numbers of every size, and special ones.
#pragma once

#include <cstdint>
#include <vector>

#include "autograph/attribute.h"
#include "ops/elementwise/formula/formula_table.h"

namespace autograph {

/// Values for the operands of a formula, and for its parameters.
struct FormulaValues {
  std::vector<std::vector<float>> operands;
  std::vector<float> parameters;
  Attributes attributes;  ///< The parameters, and which of several formulas it is.

  int64_t count() const { return static_cast<int64_t>(operands[0].size()); }
  /// Operands and parameters of place `i`, in the order of variables_of().
  std::vector<float> at(int64_t i) const;
};

/// The first ones combine zeros, ones, infinities, NaN, the smallest and the largest numbers; the others are drawn from
/// [-10, 10] or from all bit patterns. Always the same for the same formula.
FormulaValues draw_formula_values(const Formula& formula, int64_t count);

}  // namespace autograph
