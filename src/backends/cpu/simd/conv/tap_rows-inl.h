// What happens around tap products: rows of inputs are gathered, sums are written where they belong.
#if defined(AG_SIMD_TAP_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef AG_SIMD_TAP_ROWS_INL_H
#undef AG_SIMD_TAP_ROWS_INL_H
#else
#define AG_SIMD_TAP_ROWS_INL_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/highway.h>
#include "backends/cpu/simd/conv/conv_steps-inl.h"
#include "backends/cpu/simd/conv/tap_products.h"
#include "backends/cpu/simd/linear/micro_gemm-inl.h"
#include "backends/cpu/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE int64_t lanes_of_target() { return static_cast<int64_t>(hn::Lanes(D())); }

// Points of the task's rows that are next to each other on the last axis.
struct Segment {
  TapAxes point;
  int64_t row;  // in the task
  int64_t count;
};

template <class Visit>
HWY_INLINE void for_segments(const TapTask& task, const Visit& visit) {
  const TapAxes& points = task.shape.points;
  const int64_t line = task.row / points[2];
  Segment segment{{line / points[1], line % points[1], task.row % points[2]}, 0, 0};
  for (; segment.row < task.rows; segment.row += segment.count) {
    segment.count = std::min(points[2] - segment.point[2], task.rows - segment.row);
    visit(segment);
    segment.point[2] = 0;
    if (++segment.point[1] < points[1]) continue;
    segment.point[1] = 0;
    ++segment.point[0];
  }
}

// Which of the points from `begin` to `end` have an input for a tap at `offset`; none: an empty range.
struct Range {
  int64_t begin, end;
};

HWY_INLINE Range points_inside(int64_t begin, int64_t end, int64_t step, int64_t offset, int64_t extent) {
  const int64_t first = offset >= 0 ? 0 : (-offset + step - 1) / step;
  const int64_t last = offset >= extent ? 0 : (extent - 1 - offset) / step + 1;
  const Range inside{std::clamp(first, begin, end), std::clamp(last, begin, end)};
  return {inside.begin, std::max(inside.begin, inside.end)};
}

// Does the tap meet an input in a box around the task's rows?
inline bool is_tap_met(const TapTask& task, const TapAxes& tap) {
  const TapAxes& points = task.shape.points;
  int64_t first = task.row, last = task.row + task.rows - 1;
  int64_t inner = points[1] * points[2];
  bool is_one = true;  // on the axes before, all rows have the same position
  for (size_t a = 0; a < 3; ++a) {
    const int64_t begin = is_one ? first / inner : 0, end = is_one ? last / inner + 1 : points[a];
    const Range met = points_inside(begin, end, task.shape.in_step[a], tap[a], task.shape.in[a]);
    if (met.begin == met.end) return false;
    is_one = is_one && end - begin == 1;
    first %= inner;
    last %= inner;
    inner = a == 0 ? points[2] : 1;
  }
  return true;
}

/// Calls visit(begin, end) for taps in a row some of which meet inputs: others are left out.
template <class Visit>
void for_tap_runs(const TapTask& task, const TapClass& c, const Visit& visit) {
  const auto taps = static_cast<int64_t>(c.taps.size());
  for (int64_t tap = 0; tap < taps;) {
    int64_t end = tap;
    while (end < taps && is_tap_met(task, c.taps[static_cast<size_t>(end)])) ++end;
    if (end > tap) visit(tap, end);
    tap = end + 1;
  }
}

// Channels of a pixel to where they are next to each other.
HWY_INLINE void copy_channels(const TapPlaces& places, const float* x, int64_t channel, int64_t count, int64_t pixel,
                              float* to) {
  for (int64_t done = 0; done < count;) {
    const int64_t at = channel + done;
    const int64_t piece = std::min(count - done, places.block - at % places.block);
    std::copy_n(x + places.at(at, pixel), piece, to + done);
    done += piece;
  }
}

// Some channels that a tap meets in the points of a segment, to `to` and every `stride` behind it.
inline void gather_segment(const TapTask& task, const Segment& segment, const TapAxes& tap, int64_t channel,
                           int64_t count, float* to, int64_t stride) {
  const TapShape& s = task.shape;
  const auto fill = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::fill_n(to + i * stride, count, 0.0F);
  };
  TapAxes in;
  for (size_t a = 0; a < 3; ++a) in[a] = segment.point[a] * s.in_step[a] + tap[a];
  if (in[0] < 0 || in[0] >= s.in[0] || in[1] < 0 || in[1] >= s.in[1]) return fill(0, segment.count);
  const Range inside = points_inside(0, segment.count, s.in_step[2], in[2], s.in[2]);
  const int64_t pixel = (in[0] * s.in[1] + in[1]) * s.in[2] + in[2];
  fill(0, inside.begin);
  for (int64_t i = inside.begin; i < inside.end; ++i) {
    copy_channels(task.in, task.x, channel, count, pixel + i * s.in_step[2], to + i * stride);
  }
  fill(inside.end, segment.count);
}

/// `depth` taps and channels from the k-th on of all rows of the task, each to `stride` behind the one before.
inline void gather_rows(const TapTask& task, const TapClass& c, int64_t k, int64_t depth, float* to, int64_t stride) {
  const int64_t channels = task.shape.channels.in;
  for (int64_t done = 0; done < depth;) {
    const int64_t channel = (k + done) % channels, count = std::min(channels - channel, depth - done);
    const TapAxes& tap = c.taps[static_cast<size_t>((k + done) / channels)];
    for_segments(task, [&](const Segment& segment) {
      gather_segment(task, segment, tap, task.group * channels + channel, count, to + segment.row * stride + done,
                     stride);
    });
    done += count;
  }
}

/// Sums of all rows of the task in some columns of a class.
struct Sums {
  const float* data;
  int64_t stride;
  int64_t column, columns;
};

// Elements of y that are complete but for the steps behind them.
inline void apply_steps(const TapTask& task, int64_t at, int64_t count) {
  const D d;
  const int64_t lanes = lanes_of_target();
  float* const y = task.y + at;
  const ConvResiduals residuals = task.residuals + at;
  for (const ConvStep& step : task.steps) {
    const float* const from = residuals.of(step);
    apply_conv_step(d, step, [&](const auto& f) HWY_ATTR {
      const auto none = [&]() HWY_ATTR { return hn::Zero(d); };
      int64_t i = 0;
      for (; i + lanes <= count; i += lanes) {
        const auto residual = [&]() HWY_ATTR { return hn::LoadU(d, from + i); };
        hn::StoreU(f(hn::LoadU(d, y + i), residual), d, y + i);
      }
      if (i == count) return;
      const auto rest = static_cast<size_t>(count - i);
      const auto residual = [&]() HWY_ATTR { return load_some(d, from + i, rest, none()); };
      store_some(d, f(load_some(d, y + i, rest, none()), residual), y + i, rest);
    });
  }
}

// The output of a phase in a point, as a pixel; -1 where it is none.
HWY_INLINE int64_t pixel_of(const TapShape& s, const TapAxes& point, const TapAxes& phase) {
  int64_t pixel = 0;
  for (size_t a = 0; a < 3; ++a) {
    const int64_t out = point[a] * s.out_step[a] + s.first_out[a] + phase[a];
    if (out < 0 || out >= s.out[a]) return -1;
    pixel = pixel * s.out[a] + out;
  }
  return pixel;
}

// Columns in which channels are next to each other, to layouts in which they are, too.
inline void write_pixels(const TapTask& task, const TapClass& c, const Sums& sums) {
  const TapShape& s = task.shape;
  const int64_t end = sums.column + sums.columns;
  for_segments(task, [&](const Segment& segment) {
    for (int64_t i = 0; i < segment.count; ++i) {
      const TapAxes point{segment.point[0], segment.point[1], segment.point[2] + i};
      const float* from = sums.data + (segment.row + i) * sums.stride;
      for (int64_t column = sums.column; column < end;) {
        const int64_t phase = column / s.channels.out, first = column % s.channels.out;
        const int64_t channel = task.group * s.channels.out + first;
        const int64_t count =
            std::min({end - column, s.channels.out - first, task.out.block - channel % task.out.block});
        const int64_t pixel = pixel_of(s, point, c.phases[static_cast<size_t>(phase)]);
        if (pixel >= 0) {
          const int64_t at = task.out.at(channel, pixel);
          std::copy_n(from + column - sums.column, count, task.y + at);
          apply_steps(task, at, count);
        }
        column += count;
      }
    }
  });
}

// to[i * step + j] = from[i * stride + j] for `count` rows of kWidth (0: `width`).
template <int64_t kWidth>
HWY_INLINE void interleave(const float* from, int64_t stride, int64_t count, int64_t width, float* to, int64_t step) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * step, from + i * stride, static_cast<size_t>(kWidth > 0 ? kWidth : width) * sizeof(float));
  }
}

HWY_INLINE void interleave_any(const float* from, int64_t stride, int64_t count, int64_t width, float* to,
                               int64_t step) {
  switch (width) {
    case 1: return interleave<1>(from, stride, count, width, to, step);
    case 2: return interleave<2>(from, stride, count, width, to, step);
    case 4: return interleave<4>(from, stride, count, width, to, step);
    case 8: return interleave<8>(from, stride, count, width, to, step);
    default: return interleave<0>(from, stride, count, width, to, step);
  }
}

// The same for two pairs of columns next to each other, which go to two lines.
HWY_INLINE void interleave_two_pairs(const float* from, int64_t stride, int64_t count, float* to, float* second) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  for (; i + 2 <= count; i += 2) {
    const auto r0 = hn::BitCast(pairs, hn::LoadU(d, from + i * stride));
    const auto r1 = hn::BitCast(pairs, hn::LoadU(d, from + (i + 1) * stride));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, r0, r1)), d, to + 2 * i);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, r0, r1)), d, second + 2 * i);
  }
#endif
  interleave<2>(from + i * stride, stride, count - i, 2, to + 2 * i, 2);
  interleave<2>(from + i * stride + 2, stride, count - i, 2, second + 2 * i, 2);
}

// Neighbouring columns that go to one line: phases of one channel next to each other.
struct LinePart {
  const float* from;  // in the first row of the task
  float* plane;
  TapAxes phase;
  int64_t width;
};

inline LinePart line_part(const TapTask& task, const TapClass& c, const Sums& sums, int64_t column) {
  const auto phases = static_cast<int64_t>(c.phases.size());
  const int64_t channel = column / phases, first = column % phases;
  const int64_t most = std::min(phases - first, sums.column + sums.columns - column);
  const TapAxes* const phase = c.phases.data() + first;
  int64_t width = 1;
  while (width < most && phase[width] == TapAxes{phase[0][0], phase[0][1], phase[0][2] + width}) ++width;
  return {.from = sums.data + column - sums.column,
          .plane = task.y + (task.group * task.shape.channels.out + channel) * task.out.of_block,
          .phase = *phase,
          .width = width};
}

// Where the line of a part begins in a segment; null where y has no such line.
HWY_INLINE float* line_of(const TapShape& s, const Segment& segment, const LinePart& part) {
  const int64_t pixel =
      pixel_of(s, {segment.point[0], segment.point[1], 0}, {part.phase[0], part.phase[1], -s.first_out[2]});
  return pixel < 0 ? nullptr : part.plane + pixel;
}

// The outputs of a segment that are there, of points that may have others that are not.
inline void write_some(const TapShape& s, const float* from, int64_t stride, const Range& range, int64_t base,
                       int64_t width, float* line) {
  for (int64_t i = range.begin; i < range.end; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      const int64_t out = base + i * s.out_step[2] + j;
      if (out >= 0 && out < s.out[2]) line[out] = from[i * stride + j];
    }
  }
}

// A part, or a part and the one behind it if both are pairs of the same phases.
inline void write_line_parts(const TapTask& task, int64_t stride, const LinePart& part, const LinePart* behind) {
  const TapShape& s = task.shape;
  const int64_t step = s.out_step[2];
  for_segments(task, [&](const Segment& segment) {
    const int64_t base = s.first_out[2] + part.phase[2] + segment.point[2] * step, rows = segment.row * stride;
    float* const line = line_of(s, segment, part);
    float* const line_behind = behind ? line_of(s, segment, *behind) : nullptr;
    const Range whole = points_inside(0, segment.count, step, base, s.out[2] - part.width + 1);
    const int64_t from = rows + whole.begin * stride, first = base + whole.begin * step;
    const int64_t count = whole.end - whole.begin;
    const bool both = line && line_behind && step == 2;
    if (both) interleave_two_pairs(part.from + from, stride, count, line + first, line_behind + first);
    const auto write = [&](const LinePart& of, float* to) {
      if (!to) return;
      write_some(s, of.from + rows, stride, {0, whole.begin}, base, of.width, to);
      if (!both) interleave_any(of.from + from, stride, count, of.width, to + first, step);
      write_some(s, of.from + rows, stride, {whole.end, segment.count}, base, of.width, to);
    };
    write(part, line);
    if (behind) write(*behind, line_behind);
  });
}

// One phase of neighbouring channels: columns become lines.
inline void turn_columns(const float* from, int64_t stride, int64_t columns, int64_t count, float* to, int64_t plane) {
  int64_t c = 0;
  for (; c + 4 <= columns; c += 4) {
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) transpose_4x4(from + i * stride + c, stride, to + c * plane + i, plane);
    for (int64_t j = c; j < c + 4; ++j)
      interleave<1>(from + i * stride + j, stride, count - i, 1, to + j * plane + i, 1);
  }
  for (; c < columns; ++c) interleave<1>(from + c, stride, count, 1, to + c * plane, 1);
}

// The same of all rows, and the steps behind them.
inline void write_columns(const TapTask& task, const Sums& sums) {
  const int64_t plane = task.out.of_block;
  for_segments(task, [&](const Segment& segment) {
    const int64_t channel = task.group * task.shape.channels.out + sums.column;
    const int64_t at = task.out.at(channel, pixel_of(task.shape, segment.point, {}));
    turn_columns(sums.data + segment.row * sums.stride, sums.stride, sums.columns, segment.count, task.y + at, plane);
    for (int64_t j = 0; j < sums.columns && !task.steps.empty(); ++j) apply_steps(task, at + j * plane, segment.count);
  });
}

// Columns in which phases are next to each other, to planes of channels.
inline void write_planes(const TapTask& task, const TapClass& c, const Sums& sums) {
  const bool is_conv = task.shape.out_step == TapAxes{1, 1, 1} && task.shape.first_out == TapAxes{};
  if (is_conv) return write_columns(task, sums);
  const int64_t end = sums.column + sums.columns;
  for (int64_t column = sums.column; column < end;) {
    const LinePart part = line_part(task, c, sums, column);
    column += part.width;
    if (part.width == 2 && column < end) {
      const LinePart behind = line_part(task, c, sums, column);
      if (behind.width == 2 && behind.phase[2] == part.phase[2]) {
        write_line_parts(task, sums.stride, part, &behind);
        column += behind.width;
        continue;
      }
    }
    write_line_parts(task, sums.stride, part, nullptr);
  }
}

inline void write_sums(const TapTask& task, const TapClass& c, const Sums& sums) {
  task.order == TapColumns::channels_inside ? write_pixels(task, c, sums) : write_planes(task, c, sums);
}

}  // namespace
}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
