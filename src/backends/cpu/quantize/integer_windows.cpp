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
}

void IntegerWindows::fill(const uint8_t* channel, int64_t tap, int64_t begin, int64_t count, uint8_t turn,
                          uint8_t outside, uint8_t* to) const {
  const auto& [depths, heights, widths] = std::tie(axes_[0], axes_[1], axes_[2]);
  const auto input = [](const WindowAxis& axis, int64_t output, int64_t k) {
    return output * axis.stride - axis.pad_begin + k * axis.dilation;
  };
  const int64_t w = input(widths, 0, tap % widths.kernel), stride = widths.stride;
  for (int64_t pixel = begin; pixel < begin + count;) {
    const int64_t row = pixel / widths.out, at = pixel % widths.out;
    const int64_t end = std::min(widths.out, at + begin + count - pixel);
    const int64_t d = input(depths, row / heights.out, tap / widths.kernel / heights.kernel);
    const int64_t h = input(heights, row % heights.out, tap / widths.kernel % heights.kernel);
    const bool is_inside = d >= 0 && d < depths.in && h >= 0 && h < heights.in;
    // Outputs [first, last) of [at, end) read inputs of the row.
    int64_t last = is_inside && w < widths.in ? (widths.in - 1 - w) / stride + 1 : 0;
    last = std::clamp(last, at, end);
    const int64_t first = std::clamp(w >= 0 ? 0 : (stride - 1 - w) / stride, at, last);
    std::fill(to, to + (first - at), outside);
    const uint8_t* from = channel + (d * heights.in + h) * widths.in + w;
    if (stride == 1) {
      for (int64_t o = first; o < last; ++o) to[o - at] = from[o] ^ turn;
    } else {
      for (int64_t o = first; o < last; ++o) to[o - at] = from[o * stride] ^ turn;
    }
    std::fill(to + (last - at), to + (end - at), outside);
    to += end - at;
    pixel += end - at;
  }
}

}  // namespace autograph
