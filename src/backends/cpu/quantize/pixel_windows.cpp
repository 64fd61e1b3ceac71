#include "backends/cpu/quantize/pixel_windows.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace autograph {
namespace {

int64_t span_of(const WindowAxis& axis) { return (axis.kernel - 1) * axis.dilation + 1; }

bool is_inside(const WindowAxis& axis, int64_t begin) { return begin >= 0 && begin + span_of(axis) <= axis.in; }

}  // namespace

PixelWindows::PixelWindows(const QuantizedCall& conv) : images_(conv.x_dims[0]), channels_(conv.x_dims[1]) {
  axes_ = resolve_windows(window_spec(*conv.attributes, Dims(conv.w_dims.begin() + 2, conv.w_dims.end())),
                          std::span<const int64_t>(conv.x_dims).subspan(2));
  while (axes_.size() < 3) axes_.insert(axes_.begin(), WindowAxis{.in = 1, .out = 1});
  for (const WindowAxis& axis : axes_) {
    pixels_ *= axis.out;
    inputs_ *= axis.in;
    row_taps_ *= axis.kernel;
    are_in_place_ = are_in_place_ && axis.kernel == 1 && axis.stride == 1 && axis.pad_begin == 0 && axis.in == axis.out;
  }
  const auto& [depths, heights, widths] = std::tie(axes_[0], axes_[1], axes_[2]);
  // Neighbours along the width are one run.
  const int64_t runs_of_line = widths.dilation == 1 ? 1 : widths.kernel;
  for (int64_t d = 0; d < depths.kernel; ++d) {
    for (int64_t h = 0; h < heights.kernel; ++h) {
      const int64_t line = d * depths.dilation * heights.in + h * heights.dilation;
      for (int64_t w = 0; w < runs_of_line; ++w) runs_.push_back((line * widths.in + w * widths.dilation) * channels_);
    }
  }
}

PixelWindows::Position PixelWindows::position(int64_t number) const {
  const auto& [depths, heights, widths] = std::tie(axes_[0], axes_[1], axes_[2]);
  const int64_t line = number / widths.out, plane = line / heights.out;
  return {.image = plane / depths.out,
          .d = plane % depths.out * depths.stride - depths.pad_begin,
          .h = line % heights.out * heights.stride - heights.pad_begin,
          .w = number % widths.out * widths.stride - widths.pad_begin};
}

const uint8_t* PixelWindows::start(const uint8_t* images, int64_t number) const {
  if (are_in_place_) return images + number * channels_;
  const auto& [depths, heights, widths] = std::tie(axes_[0], axes_[1], axes_[2]);
  const Position at = position(number);
  if (!is_inside(depths, at.d) || !is_inside(heights, at.h) || !is_inside(widths, at.w)) return nullptr;
  return images + (at.image * inputs_ + (at.d * heights.in + at.h) * widths.in + at.w) * channels_;
}

void PixelWindows::fill(const uint8_t* images, int64_t number, uint8_t outside, uint8_t* row) const {
  const auto& [depths, heights, widths] = std::tie(axes_[0], axes_[1], axes_[2]);
  const Position at = position(number);
  const uint8_t* const image = images + at.image * inputs_ * channels_;
  const TapRange taps = widths.taps_inside(number % widths.out);
  const auto fill_taps = [&](int64_t count) {
    std::memset(row, outside, static_cast<size_t>(count * channels_));
    row += count * channels_;
  };
  const auto copy_taps = [&](const uint8_t* from, int64_t count) {
    std::memcpy(row, from, static_cast<size_t>(count * channels_));
    row += count * channels_;
  };
  for (int64_t kd = 0; kd < depths.kernel; ++kd) {
    const int64_t d = at.d + kd * depths.dilation;
    for (int64_t kh = 0; kh < heights.kernel; ++kh) {
      const int64_t h = at.h + kh * heights.dilation;
      if (d < 0 || d >= depths.in || h < 0 || h >= heights.in || taps.count == 0) {
        fill_taps(widths.kernel);
        continue;
      }
      fill_taps(taps.kernel);
      const uint8_t* const from = image + ((d * heights.in + h) * widths.in + taps.input) * channels_;
      if (widths.dilation == 1) {
        copy_taps(from, taps.count);
      } else {
        for (int64_t t = 0; t < taps.count; ++t) copy_taps(from + t * widths.dilation * channels_, 1);
      }
      fill_taps(widths.kernel - taps.kernel - taps.count);
    }
  }
}

}  // namespace autograph
