// The two layouts between which depth_to_space and space_to_depth move. The reference and the kernels share it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autograph/tensor.h"

namespace autograph {

/// Both layouts seen as [batch, channel, block row, block column, row, column]: extents, and the strides of each side.
struct DepthSpaceBlocks {
  Dims dims;
  std::vector<int64_t> deep;
  std::vector<int64_t> wide;
};

/// For a wide tensor [n, c, h*b, w*b]; `channel_first` is mode CRD.
DepthSpaceBlocks make_depth_space_blocks(std::span<const int64_t> wide_dims, int64_t block, bool channel_first);

}  // namespace autograph
