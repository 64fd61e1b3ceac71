// Sums of a convolution over row-major planes that lie padded in memory (plane_padding.h), a few output channels at
// once.
#pragma once

#include <cstdint>
#include <span>

#include "backends/cpu/simd/conv/conv_steps.h"

namespace autograph::simd {

/// Some channels of a block of rows of outputs.
struct PlaneConvTask {
  const float* padded;     ///< The rows that the windows of the block reach, of each input channel.
  int64_t padded_size;     ///< From a channel to the next.
  int64_t channels;        ///< Of the input, in `padded`.
  int64_t width;           ///< Of a padded row.
  const int64_t* offsets;  ///< Of each tap from the first input of a window.
  int64_t taps, taps_of_row;
  const float* weights;   ///< Of the first output channel, of the first channel in `padded`.
  int64_t weights_size;   ///< From an output channel to the next.
  const float* bias;      ///< What sums begin with; null: with what is there.
  int64_t outputs, rows;  ///< Channels and rows of outputs.
  int64_t row_stride;     ///< In padded rows, from a row of outputs to the next.
  bool is_dense;          ///< Do the rows of a window follow one another?
  int64_t columns;
  float* sums;    ///< [outputs, rows, pitch]
  int64_t pitch;  ///< A multiple of plane_conv_lanes() and at least `columns`.
};

/// Adds the products of all taps and channels to the sums. Reads up to kPlaneSlack elements behind the padded rows.
void add_plane_products(const PlaneConvTask& task);

/// The steps behind the convolution on `count` sums; `residuals` are what they read.
void finish_row(std::span<const ConvStep> steps, const ConvResiduals& residuals, float* sums, int64_t count);

/// Elements of a vector.
int64_t plane_conv_lanes();

}  // namespace autograph::simd
