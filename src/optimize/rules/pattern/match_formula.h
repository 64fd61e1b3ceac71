// Which values and numbers a formula of a pattern stands for at a value of a graph.
#pragma once

#include <optional>
#include <vector>

#include "autograph/graph.h"
#include "base/function_ref.h"
#include "optimize/rules/pattern/formula.h"

namespace autograph {

/// The variables of a match in progress.
class FormulaVariables {
 public:
  virtual ~FormulaVariables() = default;
  /// What a variable stands for; invalid: nothing yet.
  virtual ValueId bound(uint32_t variable) const = 0;
  /// False when it stands for something else, or may not stand for that.
  virtual bool bind(uint32_t variable, ValueId value) = 0;
  /// Does a variable stand for this value?
  virtual bool is_bound(ValueId value) const = 0;
  /// Everything bound since `num_bound()` gave `mark` is free again.
  virtual size_t num_bound() const = 0;
  virtual void unbind_to(size_t mark) = 0;
};

/// What formulas have found beside the variables.
struct FormulaFindings {
  std::vector<std::optional<double>> parameters;
  std::vector<NodeId> inner;  ///< Nodes inside of formulas, those of operands first.
};

/// Calls `found` for each way in which `root` is the formula, with variables and parameters set meanwhile.
void match_formula(const Graph& graph, const PatternFormula& formula, ValueId root, FormulaVariables& variables,
                   FormulaFindings& findings, FunctionRef<void()> found);

}  // namespace autograph
