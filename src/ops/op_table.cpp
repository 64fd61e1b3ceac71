// The table of all ops, made from the words in ops/CMakeLists.txt. A plain function-local table: nothing registers
// itself.
#include <algorithm>
#include <vector>

#include "autograph/op_def.h"
#include "ops/op_list.h"

namespace autograph {

std::span<const OpDef* const> all_ops() {
  static const std::vector<const OpDef*> table = [] {
    std::vector<const OpDef*> ops{
#define AG_OP(name) &name##_def(),
#include "ops/op_list.inc"
#undef AG_OP
    };
    std::sort(ops.begin(), ops.end(), [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
    return ops;
  }();
  return table;
}

}  // namespace autograph
