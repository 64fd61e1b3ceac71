// Tensors inside of values that may be lists.
#pragma once

#include "autograph/tensor.h"
#include "base/function_ref.h"

namespace autograph {

/// `datum` with change(t) in the place of each of its tensors t of which `differs` holds. A list in which there is none
/// stays the same list, and one that nobody else holds is changed where it lies: copies of long lists add up.
Datum change_tensors(Datum datum, FunctionRef<bool(const Tensor&)> differs, FunctionRef<Tensor(const Tensor&)> change);

}  // namespace autograph
