// The loops of 3x3, 5x5, 1xN and Nx1 convolutions by Winograd's algorithms F(4x4, 3x3), F(2x2, 3x3) and F(2x2, 5x5)
// (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016), on activations whose channels lie
// together in memory.
//
// A tile of 4 x 4 or 2 x 2 outputs is made of 6 x 6 inputs. Inputs and weights are transformed into polynomials' values
// at 6 x 6 points; at each point the channels meet in a matrix product, over all tiles; the products are transformed
// back. This takes 36 products where the definition takes 144 or 100. Small tiles of 2 x 2 outputs of 3x3 are made of
// 4 x 4 inputs and take 16 products instead of 36, with less than half the transformed weights: of few tiles these take
// longer to come from memory than the products. Of lines of 3, 5 or 7 weights, tiles are four outputs in a row, made of
// as many products as inputs: 6 instead of 12, 8 instead of 20, 10 instead of 28.
//
// A longer line is a sum of lines that begin four apart, all but the last of four weights. What a section meets is what
// the one before it meets in the next tile, so that each tile is transformed once, and the sections are more input
// channels: row t of a product is tiles t, t + 1, ... one behind the other. Of 11 weights this takes 20 products
// instead of 44. At the end of a line stand as many tiles without outputs as there are sections less one.
//
// With dilation the outputs of a tile lie as far apart as the inputs that they meet: the image falls into phases, each
// of which is an image without dilation.
//
// The points are 0, 2/3, -2/3, 3/2, -3/2 and infinity: their powers stay close to 1, so that sums lose fewer digits
// than with the usual 0, 1, -1, 2, -2 (twice the error of the definition on normal values instead of four times). For
// those of lines see winograd_line_loops.cpp; those of small tiles are 0, 1, -1 and infinity.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "backends/cpu/simd/conv/conv_steps.h"

namespace autograph::simd {

/// Rows and columns of inputs of a tile, and of a small one.
inline constexpr int64_t kWinogradIn = 6, kWinogradSmallIn = 4;
/// Output channels that are computed together; the last ones may be half as many.
inline constexpr int64_t kWinogradUnit = 32;
/// Output channels are computed in multiples of this many, and blocks of channels have as many: a multiple of the lanes
/// of every instruction set.
inline constexpr int64_t kWinogradChannels = 16;

/// Channels with those that fill the last vector.
constexpr int64_t winograd_padded(int64_t channels) {
  return (channels + kWinogradChannels - 1) / kWinogradChannels * kWinogradChannels;
}

/// Outputs of a tile of a line.
inline constexpr int64_t kWinogradLineOut = 4;

/// How a line of weights is divided.
struct WinogradSections {
  int64_t taps = 0;   ///< Of one section: 3, 5 or 7, of which all but the last section use kWinogradLineOut.
  int64_t count = 1;  ///< Each begins kWinogradLineOut behind the one before.

  /// With the fewest products.
  static constexpr WinogradSections of_line(int64_t length) {
    if (length <= 3) return {3, 1};
    const auto cover = [length](int64_t taps) {
      return WinogradSections{taps,
                              1 + std::max<int64_t>(0, (length - taps + kWinogradLineOut - 1) / kWinogradLineOut)};
    };
    const WinogradSections of_five = cover(5), of_seven = cover(7);
    return of_five.products() < of_seven.products() ? of_five : of_seven;
  }
  constexpr int64_t points() const { return taps - 1 + kWinogradLineOut; }
  constexpr int64_t products() const { return points() * count; }
};

/// Elements of `rows` rows of channels, and room for the end of the last vector. Distances of a power of two would put
/// all points of a tile in the same few lines of the first cache.
constexpr int64_t winograd_plane(int64_t rows, int64_t channels) { return rows * channels + 16; }

/// Stride 1, one group.
struct WinogradShape {
  /// Rows and columns of weights: both 3, both 5, or one of them 1 and the other 3 or more.
  std::array<int64_t, 2> taps{3, 3};
  int64_t batch = 0;
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  int64_t in_block = 0;  ///< Channels of one input pixel that lie together: kWinogradChannels or all.
  int64_t out_block = 0;
  std::array<int64_t, 2> in{};
  std::array<int64_t, 2> out{};
  std::array<int64_t, 2> pad{};  ///< Before the first row and column.
  std::array<int64_t, 2> dilation{1, 1};
  bool has_small_tiles = false;  ///< Of 3x3.

  bool is_line() const { return taps[0] == 1 || taps[1] == 1; }
  /// The axis along which a line lies.
  size_t line_axis() const { return taps[0] == 1 ? 1 : 0; }
  /// Rows and columns of inputs of a tile of a square.
  int64_t tile_in() const { return has_small_tiles ? kWinogradSmallIn : kWinogradIn; }
  /// Of a line.
  WinogradSections sections() const { return WinogradSections::of_line(taps[0] * taps[1]); }
  int64_t num_sections() const { return is_line() ? sections().count : 1; }
  int64_t points() const { return is_line() ? sections().points() : tile_in() * tile_in(); }
  /// Of a product: input channels of all sections.
  int64_t depth() const { return num_sections() * in_channels; }
  /// Rows and columns of outputs of a tile.
  std::array<int64_t, 2> tile() const {
    if (!is_line()) return {tile_in() + 1 - taps[0], tile_in() + 1 - taps[1]};
    return {taps[0] == 1 ? 1 : kWinogradLineOut, taps[1] == 1 ? 1 : kWinogradLineOut};
  }
  /// Tiles of one phase, as many as the largest has, those without outputs among them.
  int64_t tiles_of_phase(size_t axis) const {
    const int64_t step = tile()[axis] * dilation[axis];
    const int64_t further = axis == line_axis() ? num_sections() - 1 : 0;
    return (out[axis] + step - 1) / step + further;
  }
  int64_t tiles_of_axis(size_t axis) const { return std::min(dilation[axis], out[axis]) * tiles_of_phase(axis); }
  int64_t tiles_high() const { return tiles_of_axis(0); }
  int64_t tiles_wide() const { return tiles_of_axis(1); }
  int64_t tiles() const { return batch * tiles_high() * tiles_wide(); }
  int64_t units() const { return (out_channels + kWinogradUnit - 1) / kWinogradUnit; }
  int64_t padded_out_channels() const { return winograd_padded(out_channels); }
  /// Columns of transformed weights of a unit.
  int64_t unit_columns(int64_t unit) const {
    return std::min(kWinogradUnit, padded_out_channels() - unit * kWinogradUnit);
  }
  /// Output channels of a unit.
  int64_t unit_channels(int64_t unit) const { return std::min(kWinogradUnit, out_channels - unit * kWinogradUnit); }
  /// Elements of the transformed weights.
  int64_t weight_elements() const { return points() * depth() * padded_out_channels(); }
  /// Rows of transformed inputs from which the products of so many tiles are made.
  int64_t transformed_rows(int64_t tiles) const { return tiles + num_sections() - 1; }
  /// Elements of one point of them.
  int64_t transformed_plane(int64_t tiles) const { return winograd_plane(transformed_rows(tiles), in_channels); }
};

/// Some neighbouring tiles.
struct WinogradTask {
  const WinogradShape& shape;
  const float* x = nullptr;
  const float* weights = nullptr;  ///< From transform_winograd_weights().
  const float* bias = nullptr;     ///< padded_out_channels()
  ConvResiduals residuals;
  float* y = nullptr;
  int64_t y_pixel = 0;  ///< Elements from one pixel's block of outputs to the next one's: out_block or more.
  std::span<const ConvStep> steps;
  float* transformed = nullptr;  ///< points() planes of transformed_rows(tiles) rows of input channels.
  int64_t first_tile = 0;
  int64_t tiles = 0;
};

/// Transforms weights [out channels, in channels, taps...] of the units from `begin` to `end`.
void transform_winograd_weights(const WinogradShape& shape, const float* weights, int64_t begin, int64_t end,
                                float* transformed);

/// Transforms the inputs of the task's tiles.
void transform_winograd_inputs(const WinogradTask& task);

/// Computes the outputs of the tiles from `begin` to `end` in one unit of output channels. `products` has room for
/// points() planes of end - begin rows of kWinogradUnit.
void compute_winograd_outputs(const WinogradTask& task, int64_t begin, int64_t end, int64_t unit, float* products);

// What they call for lines.
void transform_winograd_line_weights(const WinogradShape& shape, const float* weights, int64_t begin, int64_t end,
                                     float* transformed);
void transform_winograd_line_inputs(const WinogradTask& task);
void compute_winograd_line_outputs(const WinogradTask& task, int64_t begin, int64_t end, int64_t unit, float* products);

}  // namespace autograph::simd
