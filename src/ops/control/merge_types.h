// The type of a value that may come from either of two places: a branch, or one turn of a loop or another.
#pragma once

#include <string_view>

#include "autograph/op_def.h"

namespace autograph {

/// The narrowest type that covers both: extents that differ become unknown, ranks that differ leave the rank open. A
/// value and an optional of it give the optional. Throws TypeError naming `what` when dtypes or kinds differ.
Type merged_type(const InferContext& context, const Type& a, const Type& b, std::string_view what);

}  // namespace autograph
