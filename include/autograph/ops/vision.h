// Typed builders of the ops on images: x is [N, C, spatial...].
#pragma once

#include <string>
#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// Multiplies every extent by its scale; `attributes` are those of the resize op, for example {{"mode", "linear"}}.
Var resize(Var x, const std::vector<float>& scales, Attributes attributes = {});
/// Positions to sample images of `size` ([N, C, spatial...] as i64) at, under the maps theta, [N, r, r + 1]: [N,
/// spatial..., r].
Var affine_grid(Var theta, Var size, bool align_corners = false);
/// x at the positions in grid, [N, spatial of y..., r] in [-1, 1]. `attributes`: mode (linear, nearest, cubic),
/// padding_mode (zeros, border, reflection), align_corners.
Var grid_sample(Var x, Var grid, Attributes attributes = {});
/// Averages (or maxima) of samples in the bins of regions [n, 4] (x1, y1, x2, y2) of the images in `batch_indices` [n]:
/// [n, C, output_height, output_width]. `attributes` are those of the op.
Var roi_align(Var x, Var regions, Var batch_indices, Attributes attributes = {});
/// Boxes [N, boxes, 4] from the highest of `scores` [N, classes, boxes] down, without those that overlap one taken
/// before by more than `iou_threshold`: i64 [selected, 3] of batch, class and box.
Var non_max_suppression(Var boxes, Var scores, Var max_per_class, Var iou_threshold = {}, Var score_threshold = {},
                        bool center_point_box = false);
/// The pixels [height, width, channels] of an encoded image, u8 [bytes]. pixel_format: RGB, BGR or Grayscale.
Var image_decoder(Var file, const std::string& pixel_format = "RGB");

}  // namespace autograph
