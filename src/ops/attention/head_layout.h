// Where the elements of a tensor of heads lie.
#pragma once

#include <cstdint>
#include <span>

namespace autograph {

/// A tensor of heads: [batch, heads, length, size], or [batch, length, heads * size].
struct HeadLayout {
  /// `num_heads` counts for rank 3 alone.
  HeadLayout(std::span<const int64_t> dims, int64_t num_heads) {
    batch = dims[0];
    if (dims.size() == 4) {
      heads = dims[1], length = dims[2], size = dims[3];
      position_stride = size, head_stride = length * size;
    } else {
      heads = num_heads, length = dims[1], size = heads == 0 ? 0 : dims[2] / heads;
      position_stride = dims[2], head_stride = size;
    }
  }
  /// Elements before those of a position.
  int64_t offset(int64_t b, int64_t head, int64_t position) const {
    return b * heads * length * size + head * head_stride + position * position_stride;
  }
  int64_t batch, heads, length, size, position_stride, head_stride;
};

}  // namespace autograph
