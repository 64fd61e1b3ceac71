// The loops of 1x1 convolutions on activations whose channels lie together in memory: one matrix product, pixels by
// input channels times input channels by output channels, with the epilogue while the sums are still in registers.
#pragma once

#include <cstdint>
#include <span>

#include "backends/cpu/simd/conv/conv_steps.h"

namespace autograph::simd {

/// Some pixels, and some panels of output channels. Who asks for a product leaves the panels to share_pointwise().
struct PointwiseTask {
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  const float* panels = nullptr;  ///< All of them, from pack_pointwise_weights().
  const float* bias = nullptr;    ///< pointwise_columns(out_channels) numbers.
  const float* x = nullptr;       ///< The first pixel.
  int64_t x_stride = 0;           ///< Elements from one pixel's first channel to the next one's.
  ConvResiduals residuals;        ///< [pixels, out_channels].
  float* y = nullptr;             ///< The first pixel.
  int64_t y_stride = 0;           ///< Elements from one pixel's first output to the next one's; 0: out_channels.
  int64_t pixels = 0;
  int64_t first_panel = 0;
  int64_t end_panel = 0;
  int64_t first_pixel = 0;  ///< Of the first panel; of those between all.
  int64_t end_pixel = 0;    ///< Of the last panel.
  std::span<const ConvStep> steps;
};

/// Output channels of a panel; the last one has as many as there are left, rounded up to whole vectors.
int64_t pointwise_panel_width();
/// Those of a vector.
int64_t pointwise_vector_width();
/// Panels of so many output channels.
int64_t pointwise_panels(int64_t out_channels);

/// Packs weights [out channels, in channels] into panels, input channel after input channel; missing output channels
/// are zeros. `packed` has room for in_channels times the width times the number of panels.
void pack_pointwise_weights(const float* weights, int64_t out_channels, int64_t in_channels, float* packed);

/// All panels on `threads` threads, each of which reads all of the smaller one of pixels and weights.
void share_pointwise(const PointwiseTask& task, int threads);

}  // namespace autograph::simd
