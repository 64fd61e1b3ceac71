// Layouts: how the elements of a tensor lie in memory while a plan runs. The graph knows nothing of them: tensors that
// enter or leave a run are row-major, and kernels agree on the rest (see runtime/choose_kernels.h).
//
// Axis 1 of a tensor of rank 3 to 5 is its channel axis: [N, C, spatial...].
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "autograph/shape.h"

namespace autograph {

enum class Layout : uint8_t {
  row_major,      ///< The last axis is dense.
  channels_last,  ///< [N, spatial..., C]
  blocked8,       ///< [N, ceil(C / 8), spatial..., 8]; channels beyond C are zero.
  blocked16,      ///< [N, ceil(C / 16), spatial..., 16]; channels beyond C are zero.
};

/// "row_major", "channels_last", "blocked8", "blocked16".
std::string_view to_string(Layout layout);

/// Channels in a block: 8 or 16, and 1 for the layouts without blocks.
int64_t channel_block(Layout layout);

/// Can a tensor of this rank have the layout? Row-major fits all, the others rank 3 to 5.
bool fits_rank(Layout layout, size_t rank);

/// Dims with the channels rounded up to whole blocks.
Dims padded_dims(Layout layout, const Dims& dims);

/// Do both layouts put every element in the same place?
bool is_same_order(Layout a, Layout b, const Dims& dims);

}  // namespace autograph
