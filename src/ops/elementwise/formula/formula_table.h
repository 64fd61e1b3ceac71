// The formulas as data: by op, as expressions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograph/op_def.h"
#include "ops/elementwise/formula/expr.h"
#include "ops/elementwise/formula/formula_info.h"

namespace autograph {

/// A formula as expression; operands are the variables x0, x1, x2, parameters the variables of their names.
struct Formula {
  FormulaInfo info;
  formulas::Expr defining;  ///< What it means.
  formulas::Expr fast;      ///< What kernels compute: the same formula where it has no other form.
};

/// All of them, in the order of formulas-inl.h.
std::span<const Formula> all_formulas();

/// The place among all formulas of the one that defines a node of `op`, or nothing. Of an op with several formulas,
/// attributes say which.
std::optional<size_t> find_formula(const OpDef& op, const Attributes& attributes);

/// Names of the operands of `formula`, then of its parameters: the variables of its expressions.
std::vector<std::string> variables_of(const Formula& formula);

/// What a node of `op` computes from `operands`, each an expression or nothing where the node has no such input.
/// Nothing where no formula says it.
formulas::Expr expression_of(const OpDef& op, const Attributes& attributes, std::span<const formulas::Expr> operands);

}  // namespace autograph
