#include "backends/cpu/quantize/integer_windows.h"

#include <algorithm>
#include <tuple>

namespace autograph {

IntegerWindows::IntegerWindows(const KernelCall& call) {
  const Dims x = call.input_dims(0), w = call.input_dims(1);
  axes_ = resolve_windows(window_spec(call.attributes, Dims(w.begin() + 2, w.end())),
                          std::span<const int64_t>(x).subspan(2));
  while (axes_.size() < 3) axes_.insert(axes_.begin(), WindowAxis{.in = 1, .out = 1});
  for (const WindowAxis& axis : axes_) {
    pixels_ *= axis.out;
    inputs_ *= axis.in;
    taps_ *= axis.kernel;
  }
  for (int64_t tap = 0; tap < taps_; ++tap) tap_list_.push_back(tap_of(tap));
}

IntegerWindows::Tap IntegerWindows::tap_of(int64_t number) const {
  const auto& [depths, heights, widths] = std::tie(axes_[0], axes_[1], axes_[2]);
  const auto start = [](const WindowAxis& axis, int64_t k) { return k * axis.dilation - axis.pad_begin; };
  const int64_t w = start(widths, number % widths.kernel), stride = widths.stride;
  return {.d = start(depths, number / widths.kernel / heights.kernel),
          .h = start(heights, number / widths.kernel % heights.kernel),
          .w = w,
          .first = w >= 0 ? 0 : (stride - 1 - w) / stride,
          .last = w < widths.in ? (widths.in - 1 - w) / stride + 1 : 0};
}

IntegerWindows::Pixel IntegerWindows::pixel(int64_t number) const {
  const auto& [depths, heights, widths] = std::tie(axes_[0], axes_[1], axes_[2]);
  const int64_t row = number / widths.out;
  return {row / heights.out, row % heights.out, number % widths.out};
}

void IntegerWindows::fill(const uint8_t* channel, int64_t tap, const Pixel& begin, int64_t count, uint8_t turn,
                          uint8_t outside, uint8_t* to) const {
  const auto& [depths, heights, widths] = std::tie(axes_[0], axes_[1], axes_[2]);
  const Tap& reads = tap_list_[static_cast<size_t>(tap)];
  const int64_t stride = widths.stride;
  auto [d_out, h_out, at] = begin;
  for (int64_t rest = count; rest > 0; at = 0) {
    const int64_t end = std::min(widths.out, at + rest);
    const int64_t d = reads.d + d_out * depths.stride, h = reads.h + h_out * heights.stride;
    const bool is_inside = d >= 0 && d < depths.in && h >= 0 && h < heights.in;
    // Outputs [first, last) of [at, end) read inputs of the row.
    const int64_t last = std::clamp(is_inside ? reads.last : 0, at, end);
    const int64_t first = std::clamp(reads.first, at, last);
    if (first > at) std::fill(to, to + (first - at), outside);
    const uint8_t* from = channel + (d * heights.in + h) * widths.in + reads.w;
    if (stride == 1) {
      for (int64_t o = first; o < last; ++o) to[o - at] = from[o] ^ turn;
    } else {
      for (int64_t o = first; o < last; ++o) to[o - at] = from[o * stride] ^ turn;
    }
    if (end > last) std::fill(to + (last - at), to + (end - at), outside);
    to += end - at;
    rest -= end - at;
    if (++h_out < heights.out) continue;
    h_out = 0;
    ++d_out;
  }
}

}  // namespace autograph
