// The gradient of an elementwise op from its formula.
#pragma once

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "ops/elementwise/formula/expr.h"

namespace autograph {

/// The gradient of each operand is that of the result times the derivative of the formula. For formulas whose pieces
/// have the right derivatives where they meet, and whose derivative is finite wherever they are; the others have rules
/// of their own.
void formula_vjp(VjpContext& context);

}  // namespace autograph
