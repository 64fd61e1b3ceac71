#include "ops/vision/depth_space_blocks.h"

namespace autograph {

DepthSpaceBlocks make_depth_space_blocks(std::span<const int64_t> wide_dims, int64_t block, bool channel_first) {
  const int64_t channels = wide_dims[1];
  const int64_t rows = wide_dims[2] / block;
  const int64_t columns = wide_dims[3] / block;
  const int64_t plane = rows * columns;
  DepthSpaceBlocks blocks;
  blocks.dims = {wide_dims[0], channels, block, block, rows, columns};
  blocks.wide = {
      channels * plane * block * block, plane * block * block, columns * block, 1, columns * block * block, block};
  const int64_t channel_stride = channel_first ? block * block * plane : plane;
  const int64_t column_stride = channel_first ? plane : channels * plane;
  blocks.deep = {channels * plane * block * block, channel_stride, block * column_stride, column_stride, columns, 1};
  return blocks;
}

}  // namespace autograph
