// The passes, one per source file in this folder.
#pragma once

#include "optimize/pass.h"

namespace autograph {

bool decompose(Graph& graph, PassContext& context);
bool dead_code(Graph& graph, PassContext& context);

}  // namespace autograph
