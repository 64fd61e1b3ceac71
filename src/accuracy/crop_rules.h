// What the rules of crop_call.cpp have in common, and those that have files of their own.
#pragma once

#include "accuracy/crop_call.h"

namespace autograph {

using Cropped = std::optional<CroppedCall>;

/// All inputs as a whole, to start from; `made` as given.
CroppedCall start_crop(const WholeCall& call, const Selection& made);

/// All positions of an axis.
std::vector<int64_t> all_of(int64_t extent);

// ---- Rules: crop_windows.cpp ----
Cropped crop_pool(const WholeCall& call, const Selection& wanted);
Cropped crop_conv(const WholeCall& call, const Selection& wanted);
Cropped crop_conv_integer(const WholeCall& call, const Selection& wanted);
Cropped crop_qlinear_conv(const WholeCall& call, const Selection& wanted);
Cropped crop_conv_transpose(const WholeCall& call, const Selection& wanted);
Cropped crop_conv_grad_weight(const WholeCall& call, const Selection& wanted);

// ---- Rules: crop_moves.cpp ----
Cropped crop_gather(const WholeCall& call, const Selection& wanted);
Cropped crop_gather_elements(const WholeCall& call, const Selection& wanted);
Cropped crop_gather_nd(const WholeCall& call, const Selection& wanted);
Cropped crop_scatter_elements(const WholeCall& call, const Selection& wanted);
Cropped crop_scatter_nd(const WholeCall& call, const Selection& wanted);
Cropped crop_resize(const WholeCall& call, const Selection& wanted);
Cropped crop_grid_sample(const WholeCall& call, const Selection& wanted);

}  // namespace autograph
