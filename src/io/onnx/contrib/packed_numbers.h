// Numbers of 2, 4 or 8 bits that lie packed in bytes along the last axis, the first one in the lowest bits.
#pragma once

#include "autograph/tensor.h"

namespace autograph::io {

/// The elements of a u8 tensor of rank 1 or more: `count` along the last axis, as bytes.
Tensor unpack_numbers(const Tensor& packed, int64_t bits, int64_t count);

/// The same numbers in `to_bits` each; rows end on whole bytes in both.
Tensor repack_numbers(const Tensor& packed, int64_t bits, int64_t to_bits);

/// The elements of any tensor in f32, with other dims.
Tensor floats_of(const Tensor& tensor, const Dims& dims);

}  // namespace autograph::io
