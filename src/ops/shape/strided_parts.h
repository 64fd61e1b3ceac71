// Ops that take elements of their first input and change none: where these are in it. Their references copy them, and
// who has memory to spare the copy finds out here whether they lie in a row.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "autograph/op_def.h"
#include "ops/shape/copy_elements.h"

namespace autograph {

/// Of a slice, a split and a transpose: the elements of each output, as positions in input 0.
Strided sliced_part(const OpCall& call);
std::vector<Strided> split_parts(const OpCall& call);
Strided transposed_part(const OpCall& call);

/// Position in input 0 of the first element of each output, where all outputs are elements that lie there in a row, in
/// order; nothing for other calls. Looks at elements of the inputs behind the first alone.
std::optional<std::vector<int64_t>> starts_in_input(const OpDef& op, const OpCall& call);

}  // namespace autograph
