// Geometry of sliding windows, shared by convolutions and pools: which input elements each output element reads.
//
// On one axis, output o reads inputs o * stride - pad_begin + k * dilation for k in [0, kernel). With span =
// (kernel - 1) * dilation + 1 the number of outputs is
//   NOTSET, VALID        floor((in + pad_begin + pad_end - span) / stride) + 1, VALID having no padding;
//   with ceil_mode       ceil instead of floor, but the last window must start inside the input or its left padding;
//   SAME_UPPER, _LOWER   ceil(in / stride), with just enough padding, the odd element at the end or at the beginning.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "autograph/op_def.h"

namespace autograph {

/// The window taps of one output element that fall inside the input, on one axis.
struct TapRange {
  int64_t kernel = 0;  ///< Kernel index of the first tap.
  int64_t input = 0;   ///< Input coordinate of the first tap.
  int64_t count = 0;   ///< Number of taps; consecutive ones are `dilation` apart in the input.
};

/// A window on one axis with all numbers resolved.
struct WindowAxis {
  int64_t in = 0;
  int64_t out = 0;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;

  /// Where the last window ends, as a coordinate of the input: beyond `in` in the padding.
  int64_t reach() const { return (out - 1) * stride + (kernel - 1) * dilation + 1 - pad_begin; }
  /// Taps of output `o` whose input coordinate lies in [-before, in + after).
  TapRange taps_within(int64_t o, int64_t before, int64_t after) const;
  /// Taps of output `o` inside the input.
  TapRange taps_inside(int64_t o) const { return taps_within(o, 0, 0); }
};

/// Window attributes with defaults filled in: one entry per spatial axis, two for `pads` (all begins, then all ends).
struct WindowSpec {
  Dims kernel;
  Dims strides;
  Dims dilations;
  Dims pads;
  std::string auto_pad = "NOTSET";
  bool ceil_mode = false;
};

/// Specs of strides, pads, dilations and auto_pad, followed by `extra`.
std::vector<AttributeSpec> window_attributes(std::vector<AttributeSpec> extra = {});

/// Throws ValueError unless kernel_shape, strides, dilations and pads, where given, have one entry (pads: two) per
/// spatial axis and are positive (pads: not negative).
void check_window_attributes(const InferContext& context, int64_t spatial_rank);

/// The spec for attributes that check_window_attributes has accepted.
WindowSpec window_spec(const Attributes& attributes, Dims kernel);

/// The window on `axis` for an input extent of `in`; out <= 0 when it does not fit. Throws ShapeError on overflow.
WindowAxis resolve_window(const WindowSpec& spec, size_t axis, int64_t in);

/// As above for every spatial axis.
std::vector<WindowAxis> resolve_windows(const WindowSpec& spec, std::span<const int64_t> spatial_dims);

/// Output extent on `axis`: a number, an expression or unknown. Throws ShapeError when the window does not fit.
Dim window_extent(const InferContext& context, const WindowSpec& spec, size_t axis, const Dim& in);

/// The other way round: how far a tensor reaches of which windows make `in` elements on `axis`; may be negative.
int64_t unpooled_extent(const WindowSpec& spec, size_t axis, int64_t in);

/// Advances `index` to the next position inside `dims`, last axis fastest; false after the last one.
bool next_index(std::span<int64_t> index, std::span<const int64_t> dims);

/// Calls visit(kernel_offset, input_offset), flat row-major offsets, for every tap inside the input of output `at`.
template <class Visit>
void for_each_tap(std::span<const WindowAxis> axes, std::span<const int64_t> at, Visit&& visit) {
  std::vector<TapRange> ranges;
  Dims counts;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    ranges.push_back(axes[axis].taps_inside(at[axis]));
    counts.push_back(ranges.back().count);
    if (counts.back() == 0) return;
  }
  Dims tap(axes.size(), 0);
  do {
    int64_t kernel = 0;
    int64_t input = 0;
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      kernel = kernel * axes[axis].kernel + ranges[axis].kernel + tap[axis];
      input = input * axes[axis].in + ranges[axis].input + tap[axis] * axes[axis].dilation;
    }
    visit(kernel, input);
  } while (next_index(tap, counts));
}

/// Calls visit(position, flat_index) for every output position of the windows.
template <class Visit>
void for_each_window(std::span<const WindowAxis> axes, Visit&& visit) {
  Dims extents;
  for (const WindowAxis& axis : axes) extents.push_back(axis.out);
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return;
  Dims at(axes.size(), 0);
  int64_t flat = 0;
  do {
    visit(std::span<const int64_t>(at), flat++);
  } while (next_index(at, extents));
}

}  // namespace autograph
