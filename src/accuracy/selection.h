// Some elements of a tensor: positions on each axis, and all their combinations.
#pragma once

#include <random>
#include <vector>

#include "autograph/tensor.h"

namespace autograph {

/// For each axis positions, in order, which may repeat.
using Selection = std::vector<std::vector<int64_t>>;

/// All positions of all axes.
Selection select_all(const Dims& dims);

/// How many positions there are on each axis.
Dims dims_of(const Selection& selection);

/// The elements, as a tensor of these extents. Not for strings.
Tensor select(const Tensor& tensor, const Selection& selection);

/// Where the positions of `wanted` stand among those of `made`, which has all of them.
Selection positions_in(const Selection& wanted, const Selection& made);

/// On every axis that is stretched from extent 1 the only position, on the others those that `of` has; `dims` are
/// aligned at the right.
Selection broadcast_selection(const Selection& of, const Dims& dims);

/// About `count` elements of a tensor. First and last positions come up, and where blocks of 16 and of a large tensor
/// end. Axes from `first_window` on get neighbours: windows over them have much in common.
Selection draw_selection(const Dims& dims, int64_t count, size_t first_window, std::mt19937_64& random);

}  // namespace autograph
