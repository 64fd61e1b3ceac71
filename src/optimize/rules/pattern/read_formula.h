// A value of a graph, read as a formula (formula.h).
#pragma once

#include <vector>

#include "autograph/graph.h"
#include "base/function_ref.h"
#include "optimize/rules/pattern/formula.h"

namespace autograph {

/// How far a formula is read.
struct FormulaReading {
  FunctionRef<bool(ValueId)> is_known;  ///< Is it a variable of the formula already? Then it is read no further.
  /// Through sums and products with numbers alone: what is left is the x of a x + b.
  bool only_numbers = false;
  bool is_root = false;  ///< The value itself may be read by others.
};

/// Reads `v` through arithmetic whose results nothing else reads. The nodes passed are added to `passed`, those of
/// operands first.
Sum read_formula(const Graph& graph, ValueId v, const FormulaReading& how, std::vector<NodeId>& passed);

}  // namespace autograph
