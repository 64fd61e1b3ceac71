// The rows of outputs of a row-major pool over 1 to 3 spatial dims, and the lines of inputs that each meets.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "autograph/kernel.h"
#include "ops/window/pool_loops.h"

namespace autograph::simd {

/// Depth, height and width of the windows of a pool; what the tensor lacks has one window of one element.
inline std::array<WindowAxis, 3> plane_windows(const KernelCall& call) {
  std::array<WindowAxis, 3> result;
  result.fill({.in = 1, .out = 1});
  const auto given = pool_windows(call.attributes, TensorView(DType::f32, call.input_dims(0), nullptr));
  std::copy(given.begin(), given.end(), result.end() - static_cast<std::ptrdiff_t>(given.size()));
  return result;
}

class PlaneRows {
 public:
  struct Row {
    int64_t channel, d, h;  ///< Channels are those of all images.
    int64_t at;             ///< Of its first element in the output.
  };

  explicit PlaneRows(const KernelCall& call)
      : windows_(plane_windows(call)), channels_(call.input_dims(0)[0] * call.input_dims(0)[1]) {
    for (size_t a = 0; a < inside_.size(); ++a) {
      for (int64_t o = 0; o < windows_[a].out; ++o) inside_[a].push_back(windows_[a].taps_inside(o));
    }
  }

  const std::array<WindowAxis, 3>& windows() const { return windows_; }
  const WindowAxis& width() const { return windows_[2]; }
  int64_t count() const { return channels_ * windows_[0].out * windows_[1].out; }
  /// Of a window.
  int64_t taps() const { return most_lines() * windows_[2].kernel; }
  /// Lines of inputs that a row may meet.
  int64_t most_lines() const { return windows_[0].kernel * windows_[1].kernel; }
  /// Elements of a channel of the input.
  int64_t plane() const { return windows_[0].in * windows_[1].in * windows_[2].in; }

  /// Calls visit(row) for rows [begin, end).
  template <class Visit>
  void for_each(int64_t begin, int64_t end, const Visit& visit) const {
    const int64_t depth = windows_[0].out, height = windows_[1].out;
    int64_t h = begin % height, d = begin / height % depth, channel = begin / height / depth;
    for (int64_t row = begin; row < end; ++row) {
      visit(Row{channel, d, h, row * windows_[2].out});
      if (++h < height) continue;
      h = 0;
      if (++d < depth) continue;
      d = 0;
      ++channel;
    }
  }

  /// Calls visit(begin) with where in its channel each line of inputs begins that the windows of a row meet.
  template <class Visit>
  void for_each_line(const Row& row, const Visit& visit) const {
    const WindowAxis &depth = windows_[0], &height = windows_[1];
    const TapRange in_depth = inside_[0][static_cast<size_t>(row.d)],
                   in_height = inside_[1][static_cast<size_t>(row.h)];
    for (int64_t i = 0; i < in_depth.count; ++i) {
      for (int64_t j = 0; j < in_height.count; ++j) {
        const int64_t z = in_depth.input + i * depth.dilation;
        visit((z * height.in + in_height.input + j * height.dilation) * windows_[2].in);
      }
    }
  }

 private:
  std::array<WindowAxis, 3> windows_;
  int64_t channels_;
  std::array<std::vector<TapRange>, 2> inside_;  // of depth and height, by output
};

}  // namespace autograph::simd
