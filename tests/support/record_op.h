// Ops with an effect: they leave their tags where tests see them.
#pragma once

#include <cstdint>
#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// y = x; appends `tag` to the record when it runs. The op is registered and has an ONNX form.
Var add_record(Var x, int64_t tag);

/// The same by an op that says of itself that it talks to other ranks, which nobody reads either.
Var add_collective_record(Var x, int64_t tag);

/// The tags that ran since the last call, in their order.
std::vector<int64_t> take_record();

}  // namespace autograph
