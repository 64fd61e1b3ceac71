// What the operators new of this program have counted so far; defined beside them.
#pragma once

#include <cstdint>

namespace autograph {

/// Allocations of whatever is linked into the program.
int64_t num_allocations();
/// Those among them that code of the library libdnnl itself asked for.
int64_t num_allocations_of_onednn();

}  // namespace autograph
