// Weights of 4 or 8 bits in blocks along their last dim, as block_matmul and gather_block_matmul take them.
#pragma once

#include "autograph/builder.h"
#include "autograph/op_def.h"

namespace autograph {

/// Throws unless the attributes bits, k and x_bits have one of their values, and q [..., blocks, block * bits / 8] in
/// `slot` has blocks for k numbers.
void check_block_weights(const InferContext& context, size_t slot);

/// (q - zero) * scale as floats [..., k]: q of rank `rank`, scale and zero [..., blocks]; zero may be missing.
Var floats_of_blocks(Var q, Var scale, Var zero, int64_t rank, const Attributes& attributes);

}  // namespace autograph
