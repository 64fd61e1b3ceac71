// Writing updates into a copy of `data`, with the reductions that scatter_elements and scatter_nd share.
#pragma once

#include <span>

#include "autograph/op_def.h"

namespace autograph {

/// The attribute `reduction`: none, add, mul, max or min.
AttributeSpec reduction_spec();

/// Throws TypeError when the dtype of input 0 does not know the reduction.
void check_reduction(const InferContext& context);

/// output 0 = input 0 with update k, `length` elements from input 2, combined into position starts[k], in order.
void scatter_updates(const OpCall& call, std::span<const int64_t> starts, int64_t length);

}  // namespace autograph
