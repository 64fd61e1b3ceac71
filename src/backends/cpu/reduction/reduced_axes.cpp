#include "backends/cpu/reduction/reduced_axes.h"
#include "tensor/front_axis.h"

#include <algorithm>

namespace autograph {
namespace {

// Neighbouring axes of one kind, taken together.
struct Block {
  int64_t extent;
  int64_t stride;
  bool is_reduced;
};

// Outermost first. Extents of 1 belong to either kind.
std::vector<Block> blocks_of(const Dims& dims, const std::vector<bool>& is_reduced) {
  std::vector<Block> blocks;
  int64_t stride = 1;
  for (size_t a = dims.size(); a-- > 0; stride *= dims[a]) {
    if (dims[a] == 1) continue;
    if (!blocks.empty() && blocks.back().is_reduced == is_reduced[a]) {
      blocks.back().extent *= dims[a];
    } else {
      blocks.push_back({dims[a], stride, is_reduced[a]});
    }
  }
  std::reverse(blocks.begin(), blocks.end());
  return blocks;
}

}  // namespace

ReducedAxes::ReducedAxes(const Dims& dims, const std::vector<bool>& is_reduced) : offsets{0} {
  std::vector<Block> blocks = blocks_of(dims, is_reduced);
  if (!blocks.empty()) {
    run = blocks.back().extent;
    is_row = blocks.back().is_reduced;
    blocks.pop_back();
  }
  for (const Block& block : blocks) {
    if (!block.is_reduced) {
      groups *= block.extent;
      extents.push_back(block.extent);
      strides.push_back(block.stride);
      continue;
    }
    std::vector<int64_t> all;
    all.reserve(offsets.size() * static_cast<size_t>(block.extent));
    for (const int64_t offset : offsets) {
      for (int64_t i = 0; i < block.extent; ++i) all.push_back(offset + i * block.stride);
    }
    offsets = std::move(all);
  }
  if (extents.empty()) {
    extents = {1};
    strides = {0};
  }
}

std::vector<bool> axis_flags(const std::vector<int64_t>& axes, size_t rank) {
  std::vector<bool> flags(rank, false);
  for (const int64_t axis : axes) flags[static_cast<size_t>(front_axis(axis, static_cast<int64_t>(rank)))] = true;
  return flags;
}

}  // namespace autograph
