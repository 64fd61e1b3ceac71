// Where the elements of a padded tensor come from. The reference and the kernels share it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "autograph/tensor.h"

namespace autograph {

/// positions[axis][i]: where along `axis` of the input, of dims x, position i of the output, of dims y, comes from;
/// -1: from nowhere (mode constant). `axes` is absent when pads is about all axes.
std::vector<std::vector<int64_t>> pad_positions(const std::string& mode, std::span<const int64_t> x,
                                                std::span<const int64_t> y, const TensorView& pads,
                                                const TensorView& axes);

}  // namespace autograph
