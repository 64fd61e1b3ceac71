// Weights of 4 or 8 bits in blocks along their last dim, as block_matmul and gather_block_matmul take them.
#pragma once

#include "autograph/builder.h"
#include "autograph/op_def.h"

namespace autograph {

/// bits, k and x_bits.
std::vector<AttributeSpec> block_attributes();

/// Throws unless these have one of their values, q [..., blocks, block * bits / 8] in `slot` has rank `rank` and blocks
/// for k numbers, and scales and zero points in the slots behind it have the same extents but the last.
void check_block_weights(const InferContext& context, size_t slot, int64_t rank);

/// (q - zero) * scale as floats [..., k]: q of rank `rank`, scale and zero [..., blocks]; zero may be missing.
Var floats_of_blocks(Var q, Var scale, Var zero, int64_t rank, const Attributes& attributes);

/// Draws floats that rounding x leaves as they are.
Tensor draw_whole_numbers(Random& random, const Dims& dims);

}  // namespace autograph
