// Sums over the channels of a tensor of f32, in any layout: what batch normalization needs while training, in one pass
// over memory.
#pragma once

#include <cstdint>
#include <vector>

#include "autograph/kernel.h"

namespace autograph {

/// How the channels of a tensor lie in memory: `rows` rows of `pixels` pixels, each of `width` neighbouring channels.
/// Row r has the channels from r % groups * width on.
struct ChannelRows {
  int64_t rows = 1;
  int64_t pixels = 1;
  int64_t width = 1;
  int64_t groups = 1;

  /// For dims [N, C, ...] in a layout whose blocks C fills.
  ChannelRows(const Dims& dims, Layout layout);
  int64_t channels() const { return width * groups; }
  /// Elements of each channel.
  int64_t count() const { return rows / groups * pixels; }
  int64_t elements() const { return rows * pixels * width; }

  /// Calls visit(element) for all elements of a channel.
  template <class Visit>
  void for_channel(int64_t channel, const Visit& visit) const {
    for (int64_t row = channel / width; row < rows; row += groups) {
      for (int64_t p = 0; p < pixels; ++p) visit((row * pixels + p) * width + channel % width);
    }
  }

  /// Calls visit(first element, first channel, pixels) for pieces of rows that cover pixels [begin, end), counted over
  /// all rows.
  template <class Visit>
  void for_pieces(int64_t begin, int64_t end, const Visit& visit) const {
    for (int64_t at = begin; at < end;) {
      const int64_t row = at / pixels;
      const int64_t count = std::min(end, (row + 1) * pixels) - at;
      visit(at * width, row % groups * width, count);
      at += count;
    }
  }
};

/// Sums of each channel, [channels] each, one after the other.
struct ChannelSums {
  double* x = nullptr;        ///< Of x - from.
  double* squares = nullptr;  ///< Of (x - from)^2.
  double* g = nullptr;        ///< Of g; null together with `product`: not wanted.
  double* product = nullptr;  ///< Of g * (x - from).
};

/// A number near the mean of each channel, from which differences are taken: the mean of some of its elements.
void sample_channels(const ChannelRows& rows, const float* x, float* from);

/// Adds pixels [begin, end) of x and g (null where not wanted) to the sums of the channels they belong to.
void add_channel_sums(const ChannelRows& rows, const float* x, const float* g, int64_t begin, int64_t end,
                      const float* from, const ChannelSums& sums);

/// For each channel numbers a, b, c, d.
struct ChannelFactors {
  const float* a = nullptr;
  const float* b = nullptr;
  const float* c = nullptr;
  const float* d = nullptr;
};

/// y = (x - a) * b + c over pixels [begin, end).
void normalize_channels(const ChannelRows& rows, const float* x, const ChannelFactors& by, int64_t begin, int64_t end,
                        float* y);

/// y = (x - a) * b + c + g * d over pixels [begin, end).
void combine_channels(const ChannelRows& rows, const float* x, const float* g, const ChannelFactors& by, int64_t begin,
                      int64_t end, float* y);

}  // namespace autograph
