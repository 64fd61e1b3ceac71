// Grids of tap products, and how their weights are packed.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "backends/cpu/simd/conv/tap_products.h"

namespace autograph::simd {
namespace {

// The phases of one axis that meet the same inputs.
struct AxisClass {
  std::vector<int64_t> phases;
  std::vector<int64_t> taps;                  // inputs, from the first one of a point
  std::vector<std::vector<int64_t>> kernels;  // of each phase: the position of the weight of each tap
};

struct GridAxis {
  int64_t points = 1, in_step = 1, out_step = 1, first_out = 0;
  std::vector<AxisClass> classes;
};

GridAxis grid_of_conv(const WindowAxis& axis) {
  AxisClass all{{0}, {}, {{}}};
  for (int64_t k = 0; k < axis.kernel; ++k) {
    all.taps.push_back(k * axis.dilation - axis.pad_begin);
    all.kernels[0].push_back(k);
  }
  return {axis.out, axis.stride, 1, 0, {std::move(all)}};
}

void add_phase(int64_t phase, const std::vector<int64_t>& taps, std::vector<int64_t> kernels,
               std::vector<AxisClass>& classes) {
  const auto same = std::find_if(classes.begin(), classes.end(), [&](const AxisClass& c) { return c.taps == taps; });
  AxisClass& to = same == classes.end() ? classes.emplace_back(AxisClass{{}, taps, {}}) : *same;
  to.phases.push_back(phase);
  to.kernels.push_back(std::move(kernels));
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Output o is tap k of input i where o + pad = i * stride + k * dilation. With o + shift = q * stride + phase, the taps
// of a phase are those for which this gives a whole i.
GridAxis transposed_grid(const WindowAxis& axis, int64_t shift) {
  GridAxis grid{(axis.in - 1 + shift) / axis.stride + 1, 1, axis.stride, -shift, {}};
  for (int64_t phase = 0; phase < axis.stride; ++phase) {
    std::vector<int64_t> taps, kernels;
    for (int64_t k = 0; k < axis.kernel; ++k) {
      const int64_t at = phase - shift + axis.pad_begin - k * axis.dilation;
      if (at % axis.stride != 0) continue;
      taps.push_back(floor_div(at, axis.stride));
      kernels.push_back(k);
    }
    add_phase(phase, taps, std::move(kernels), grid.classes);
  }
  return grid;
}

// Points that begin where a window does have most in common, but hang over at both ends of y. This pays where the
// columns of a phase alone are few, or what hangs over is little.
GridAxis grid_of_transposed(const WindowAxis& axis, int64_t out_channels) {
  constexpr int64_t kManyChannels = 32, kPointsForOneMore = 25;
  GridAxis plain = transposed_grid(axis, 0), shifted = transposed_grid(axis, axis.pad_begin % axis.stride);
  const bool is_little = shifted.points * kPointsForOneMore <= plain.points * (kPointsForOneMore + 1);
  const bool has_less = shifted.classes.size() < plain.classes.size();
  return has_less && (is_little || out_channels < kManyChannels) ? shifted : plain;
}

// All pairs of a class of the axes before and one of the next axis, which varies fastest.
std::vector<TapClass> with_axis(const std::vector<TapClass>& before, const GridAxis& axis, size_t a, int64_t kernel) {
  std::vector<TapClass> result;
  for (const TapClass& outer : before) {
    for (const AxisClass& inner : axis.classes) {
      TapClass& both = result.emplace_back();
      for (TapAxes tap : outer.taps) {
        for (const int64_t offset : inner.taps) {
          tap[a] = offset;
          both.taps.push_back(tap);
        }
      }
      for (size_t p = 0; p < outer.phases.size(); ++p) {
        for (size_t i = 0; i < inner.phases.size(); ++i) {
          both.phases.push_back(outer.phases[p]);
          both.phases.back()[a] = inner.phases[i];
          for (size_t tap = 0; tap < outer.taps.size(); ++tap) {
            const int64_t position = outer.kernels[p * outer.taps.size() + tap] * kernel;
            for (const int64_t k : inner.kernels[i]) both.kernels.push_back(position + k);
          }
        }
      }
    }
  }
  return result;
}

template <class Grid>
TapShape shape_of(std::span<const WindowAxis> axes, bool transposed, const TapChannels& channels, const Grid& grid_of) {
  TapShape shape;
  shape.channels = channels;
  shape.classes = {{{TapAxes{}}, {TapAxes{}}, {0}}};
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t a = i + shape.in.size() - axes.size();
    const GridAxis grid = grid_of(axes[i]);
    shape.in[a] = transposed ? axes[i].out : axes[i].in;
    shape.out[a] = transposed ? axes[i].in : axes[i].out;
    shape.points[a] = grid.points;
    shape.in_step[a] = grid.in_step;
    shape.out_step[a] = grid.out_step;
    shape.first_out[a] = grid.first_out;
    shape.classes = with_axis(shape.classes, grid, a, axes[i].kernel);
  }
  return shape;
}

// A column of a class: its phase and its channel in the group.
std::pair<int64_t, int64_t> column_of(const TapShape& shape, const TapClass& c, TapColumns order, int64_t column) {
  const auto phases = static_cast<int64_t>(c.phases.size());
  if (order == TapColumns::phases_inside) return {column % phases, column / phases};
  return {column / shape.channels.out, column % shape.channels.out};
}

// Rows of weights as given are read from front to back, one input channel after the other.
void pack_panel(const TapShape& shape, const TapClass& c, const TapWeights& weights, TapColumns order, int64_t group,
                int64_t first, float* to) {
  const int64_t width = tap_columns(), columns = std::min(width, shape.columns(c) - first);
  std::fill_n(to, columns < width ? width * (1 + shape.depth(c)) : width, 0.0F);
  std::vector<const float*> from(c.taps.size() * static_cast<size_t>(columns));  // [tap, column]
  for (int64_t j = 0; j < columns; ++j) {
    const auto [phase, channel] = column_of(shape, c, order, first + j);
    if (weights.bias) to[j] = weights.bias[group * shape.channels.out + channel];
    for (size_t tap = 0; tap < c.taps.size(); ++tap) {
      from[tap * static_cast<size_t>(columns) + static_cast<size_t>(j)] =
          weights.data + group * weights.of_group + channel * weights.of_out_channel +
          c.kernels[static_cast<size_t>(phase) * c.taps.size() + tap];
    }
  }
  to += width;
  for (int64_t i = 0; i < shape.channels.in; ++i) {
    for (size_t tap = 0; tap < c.taps.size(); ++tap) {
      float* const row = to + (static_cast<int64_t>(tap) * shape.channels.in + i) * width;
      const float* const* const w = from.data() + tap * static_cast<size_t>(columns);
      for (int64_t j = 0; j < columns; ++j) row[j] = w[j][i * weights.of_in_channel];
    }
  }
}

}  // namespace

TapShape tap_shape_of_conv(std::span<const WindowAxis> axes, const TapChannels& channels) {
  return shape_of(axes, false, channels, grid_of_conv);
}

TapShape tap_shape_of_transposed(std::span<const WindowAxis> axes, const TapChannels& channels) {
  return shape_of(axes, true, channels, [&](const WindowAxis& axis) { return grid_of_transposed(axis, channels.out); });
}

bool fills_lines(const TapShape& shape) {
  return std::all_of(shape.classes.begin(), shape.classes.end(), [&](const TapClass& c) {
    const auto on_line = [&](const TapAxes& p) { return p[0] == c.phases[0][0] && p[1] == c.phases[0][1]; };
    return std::count_if(c.phases.begin(), c.phases.end(), on_line) == shape.out_step[2];
  });
}

TapPlaces::TapPlaces(Layout layout, int64_t channels, const TapAxes& extents) {
  if (layout == Layout::channels_last) {
    block = of_pixel = channels;
    return;
  }
  block = of_pixel = channel_block(layout);
  of_block = block * extents[0] * extents[1] * extents[2];
}

TapPanels::TapPanels(const TapShape& shape) {
  const int64_t width = tap_columns();
  for (const TapClass& c : shape.classes) {
    const int64_t panels = (shape.columns(c) + width - 1) / width;
    begins.push_back(of_group);
    of_group += panels * width * (1 + shape.depth(c));
    total += panels * shape.channels.groups;
  }
}

void pack_tap_panels(const TapShape& shape, const TapWeights& weights, TapColumns order, int64_t begin, int64_t end,
                     float* packed) {
  const int64_t width = tap_columns();
  int64_t panel = 0;
  for (int64_t group = 0; group < shape.channels.groups; ++group) {
    for (const TapClass& c : shape.classes) {
      for (int64_t first = 0; first < shape.columns(c); first += width, ++panel) {
        if (panel >= begin && panel < end) pack_panel(shape, c, weights, order, group, first, packed);
        packed += width * (1 + shape.depth(c));
      }
    }
  }
}

}  // namespace autograph::simd
