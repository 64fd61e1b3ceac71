// What of a recurrent op's work is done position by position: a step reads the state that the one before it made, so
// that no number of processors takes two of them at once.
#pragma once

#include <optional>

#include "autograph/op_def.h"

namespace autograph {

/// A walk over positions. All but `steps` is of one step; the products with W, which wait for nothing, are not in it.
struct WalkWork {
  double steps = 0;
  double flops = 0;
  double bytes = 0;  ///< R, and a position's part of what is read and written beside weights.
  double outputs = 0;
};

/// Nothing for other ops, and for walks of less than two steps. Types must be static.
std::optional<WalkWork> walk_work(const OpDef& op, const CostContext& context);

}  // namespace autograph
