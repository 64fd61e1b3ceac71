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
  const int64_t h_tap = tap / widths.kernel % heights.kernel, d_tap = tap / widths.kernel / heights.kernel;
  // Divisions take as long as copying a row: they are done once, for where the pixels begin.
  int64_t at = begin % widths.out, h_out = begin / widths.out % heights.out;
  int64_t d_out = begin / widths.out / heights.out;
  const int64_t inputs_right = widths.in - 1 - w;  // of the first output's
  const int64_t most_last = inputs_right < 0 ? 0 : inputs_right / stride + 1;
  const int64_t least_first = w >= 0 ? 0 : (stride - 1 - w) / stride;
  for (int64_t rest = count; rest > 0; at = 0) {
    const int64_t end = std::min(widths.out, at + rest);
    const int64_t d = input(depths, d_out, d_tap), h = input(heights, h_out, h_tap);
    const bool is_inside = d >= 0 && d < depths.in && h >= 0 && h < heights.in;
    // Outputs [first, last) of [at, end) read inputs of the row.
    const int64_t last = std::clamp(is_inside ? most_last : 0, at, end);
    const int64_t first = std::clamp(least_first, at, last);
    std::fill(to, to + (first - at), outside);
    const uint8_t* from = channel + (d * heights.in + h) * widths.in + w;
    if (stride == 1) {
      for (int64_t o = first; o < last; ++o) to[o - at] = from[o] ^ turn;
    } else {
      for (int64_t o = first; o < last; ++o) to[o - at] = from[o * stride] ^ turn;
    }
    std::fill(to + (last - at), to + (end - at), outside);
    to += end - at;
    rest -= end - at;
    if (++h_out < heights.out) continue;
    h_out = 0;
    ++d_out;
  }
}

}  // namespace autograph
