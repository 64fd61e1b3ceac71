// roi_align in other ops: how it is differentiated.
#pragma once

#include <vector>

#include "autograph/op_def.h"

namespace autograph {

/// The body; throws UnsupportedError where the extents of an image are not known.
std::vector<Var> roi_align_body(DecomposeContext& context);

}  // namespace autograph
