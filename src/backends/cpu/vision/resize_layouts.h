// Resizing tensors whose channels lie together: the axes in the order in which they lie in memory.
#pragma once

#include <vector>

#include "autograph/kernel.h"
#include "ops/vision/resize_grid.h"

namespace autograph {

/// All axes of a resize as the call's variant lays them out, outermost first; a block of channels is an axis that stays
/// as it is.
std::vector<ResizeAxis> axes_in_memory(const KernelCall& call);

/// Row-major, and the layouts in which images are resized as they are: channels-last, and blocks where the channels
/// stay and fill them. Other layouts than row-major move `gain` times as many bytes a microsecond as `bytes_per_us`.
std::vector<KernelVariant> resize_variants(const KernelCall& call, double bytes_per_us, double gain);

}  // namespace autograph
