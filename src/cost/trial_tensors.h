// Tensors on which kernels are tried: elements from a seed, in the layout that a kernel wants.
#pragma once

#include <span>
#include <string_view>

#include "autograph/kernel.h"

namespace autograph {

/// Row-major elements for input `slot` of a call: for floats zeros, numbers of both signs of which some are large and
/// some tiny; bytes of all values; indices that are legal. Where nothing is known about what integers mean: zeros. Each
/// `draw` has others, or the same in other places.
Tensor trial_input(const KernelCall& call, size_t slot, int draw = 0);

/// The same elements in another layout, in memory of its own; channels that fill up blocks are zero. The dims of the
/// result are those of the memory.
Tensor laid_out(const Tensor& row_major, Layout layout);

/// Back again, for a tensor of `dims`.
Tensor row_major(const Tensor& memory, Layout layout, const Dims& dims);

}  // namespace autograph
