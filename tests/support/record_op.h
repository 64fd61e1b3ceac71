// An op with an effect: it leaves its tag where tests see it.
#pragma once

#include <cstdint>
#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// y = x; appends `tag` to the record when it runs. The op is registered and has an ONNX form.
Var add_record(Var x, int64_t tag);

/// The tags that ran since the last call, in their order.
std::vector<int64_t> take_record();

}  // namespace autograph
