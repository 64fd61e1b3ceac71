// The loops of convolutions in groups of few channels, on activations whose channels lie together in memory.
//
// A vector of outputs belongs to neighbouring channels of one pixel. Which inputs it meets depends on the groups: with
// one channel each (depthwise) the same lanes; with fewer channels than lanes those of its own group, spread over its
// lanes; otherwise one input channel at a time, in all lanes. Two rows of seven pixels are computed together, so that
// every input that is loaded meets the weights of all windows it lies in.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "backends/cpu/simd/conv/conv_steps.h"

namespace autograph::simd {

/// As many input as output channels; groups of equal size; no dilation. Two spatial axes: rows, columns.
struct GroupedConvShape {
  int64_t channels = 0;
  int64_t group_size = 0;  ///< Channels of a group.
  int64_t block = 0;       ///< Channels of one pixel that lie together: a divisor of `channels`.
  std::array<int64_t, 2> in{};
  std::array<int64_t, 2> out{};
  std::array<int64_t, 2> kernel{};
  std::array<int64_t, 2> stride{};
  std::array<int64_t, 2> pad{};  ///< Before the first row and column.

  /// Weights of one output channel.
  int64_t taps() const { return group_size * kernel[0] * kernel[1]; }
  /// Vectors of this many lanes that cover the channels.
  int64_t num_vectors(int64_t lanes) const { return (channels + lanes - 1) / lanes; }
  /// Where vector `v` begins: the last one may overlap the one before.
  int64_t first_channel(int64_t v, int64_t lanes) const { return std::min(v * lanes, channels - lanes); }
};

/// Some rows of one instance. Pointers to tensors are to the beginning of the instance.
struct GroupedConvTask {
  const GroupedConvShape& shape;
  const float* x = nullptr;
  const float* weights = nullptr;  ///< From pack_grouped_conv().
  ConvResiduals residuals;
  float* y = nullptr;
  std::span<const ConvStep> steps;
  int64_t first_row = 0;
  int64_t rows = 0;
};

/// Are there loops for this shape and the width of this CPU's vectors?
bool has_grouped_conv(const GroupedConvShape& shape);

/// Elements that pack_grouped_conv() writes.
int64_t packed_grouped_conv_size(const GroupedConvShape& shape);

/// Weights [channels, group size, kernel...] and bias (null for zeros) in the order in which the loops read them.
void pack_grouped_conv(const GroupedConvShape& shape, const float* weights, const float* bias, float* packed);

/// Computes the rows of a task.
void run_grouped_conv(const GroupedConvTask& task);

// What it chooses from, by channels of a group: one, fewer than lanes, as many or more.
void run_depthwise(const GroupedConvTask& task);
void run_small_groups(const GroupedConvTask& task);
void run_large_groups(const GroupedConvTask& task);

}  // namespace autograph::simd
