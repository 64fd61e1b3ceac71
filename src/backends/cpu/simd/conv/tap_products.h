// Convolutions and transposed convolutions, with any strides, dilations and groups, as matrix products of gathered
// inputs with packed weights.
//
// Outputs that lie a stride apart meet the same weights. Of a convolution these are all of them; the others fall into
// phases, `stride` of them on each axis, each of which is an ordinary convolution with the taps that reach it. Phases
// that meet the same inputs share a product: its columns are phases and output channels, its rows the points of a grid
// on which the phases repeat, its depth taps and input channels. So no product is added up in memory, and no input is
// met that is not there but at the borders.
//
// Some rows at a time are gathered to where nothing else is, a part of their depth after the other, and meet the panels
// of weights; what they have summed up in the second cache is then written where it belongs.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "autograph/layout.h"
#include "backends/cpu/simd/conv/conv_steps.h"
#include "ops/window/window_geometry.h"

namespace autograph::simd {

/// Numbers of three spatial axes; missing ones come first and have one element.
using TapAxes = std::array<int64_t, 3>;

/// Phases that meet the same inputs.
struct TapClass {
  std::vector<TapAxes> phases;   ///< Where they lie, counted from the first output of a point.
  std::vector<TapAxes> taps;     ///< Inputs that they meet, counted from the first input of a point.
  std::vector<int64_t> kernels;  ///< [phase, tap]: the spatial position of the weight.
};

struct TapChannels {
  int64_t groups = 1;
  int64_t in = 0;   ///< Of a group.
  int64_t out = 0;  ///< Of a group.
};

/// Point q of the grid begins at input q * in_step and at output q * out_step + first_out, which may lie before y.
struct TapShape {
  TapChannels channels;
  TapAxes in{1, 1, 1};
  TapAxes out{1, 1, 1};
  TapAxes points{1, 1, 1};
  TapAxes in_step{1, 1, 1};
  TapAxes out_step{1, 1, 1};
  TapAxes first_out{};
  std::vector<TapClass> classes;

  int64_t num_points() const { return points[0] * points[1] * points[2]; }
  int64_t depth(const TapClass& c) const { return static_cast<int64_t>(c.taps.size()) * channels.in; }
  int64_t columns(const TapClass& c) const { return static_cast<int64_t>(c.phases.size()) * channels.out; }
};

/// A convolution with these windows.
TapShape tap_shape_of_conv(std::span<const WindowAxis> axes, const TapChannels& channels);
/// A transposed one, whose windows are seen from the result (conv_transpose_windows.h).
TapShape tap_shape_of_transposed(std::span<const WindowAxis> axes, const TapChannels& channels);

/// Do the outputs of every class that belong to one line of points fill a line of y?
bool fills_lines(const TapShape& shape);

/// Where the elements of an instance lie: channel c of pixel p at c / block * of_block + p * of_pixel + c % block.
struct TapPlaces {
  int64_t block = 1;
  int64_t of_block = 0;
  int64_t of_pixel = 1;

  TapPlaces(Layout layout, int64_t channels, const TapAxes& extents);
  int64_t at(int64_t channel, int64_t pixel) const {
    return channel / block * of_block + pixel * of_pixel + channel % block;
  }
};

/// Weights as given: [group, ...] with these distances of channels, the spatial positions dense, and a bias or null.
struct TapWeights {
  const float* data = nullptr;
  const float* bias = nullptr;
  int64_t of_in_channel = 0;
  int64_t of_out_channel = 0;
  int64_t of_group = 0;
};

/// Which of phases and channels are next to each other among the columns: phases where planes of channels are written.
enum class TapColumns : uint8_t { phases_inside, channels_inside };

/// Rows and columns that are computed together.
int64_t tap_rows();
int64_t tap_columns();

/// How packed weights lie: for each group, class and panel of columns a bias and the depth.
struct TapPanels {
  std::vector<int64_t> begins;  ///< Of each class in a group.
  int64_t of_group = 0;
  int64_t total = 0;  ///< Panels of all groups and classes.

  explicit TapPanels(const TapShape& shape);
};

/// Packs the panels from `begin` to `end` of all that there are.
void pack_tap_panels(const TapShape& shape, const TapWeights& weights, TapColumns order, int64_t begin, int64_t end,
                     float* packed);

/// Some rows of one group of one instance with a part of the columns of every class. Pointers to tensors are to the
/// beginning of the instance.
struct TapTask {
  const TapShape& shape;
  const TapPanels& panels;
  TapPlaces in, out;
  TapColumns order = TapColumns::channels_inside;
  const float* x = nullptr;
  const float* packed = nullptr;
  ConvResiduals residuals;
  float* y = nullptr;
  std::span<const ConvStep> steps;
  float* scratch = nullptr;  ///< tap_scratch_size() floats.
  int64_t group = 0;
  int64_t row = 0, rows = 0;
  int64_t part = 0, parts = 1;
};

/// Most columns of which sums are kept at a time.
inline constexpr int64_t kTapColumnsAtOnce = 512;
/// Floats that run_tap_products() needs for so many rows.
int64_t tap_scratch_size(const TapShape& shape, int64_t rows);

/// Every output is summed in the order of taps and channels, whatever part of the work the task is.
void run_tap_products(const TapTask& task);

}  // namespace autograph::simd
