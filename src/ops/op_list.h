// Declares `const OpDef& <op>_def()` for every op registered in ops/CMakeLists.txt.
#pragma once

#include "autograph/op_def.h"

namespace autograph {

#define AG_OP(name) const OpDef& name##_def();
#include "ops/op_list.inc"
#undef AG_OP

}  // namespace autograph
