#include "backends/cpu/onednn/conv/conv_windows.h"

#include <algorithm>
#include <utility>

namespace autograph::onednn {
namespace {

// Does a window see nothing but padding? One whose first tap meets the input does not: others are few, at both ends.
bool has_empty_window(const WindowAxis& axis) {
  const auto reaches = [&](int64_t input) {  // first window that begins there or behind it
    const int64_t way = std::max<int64_t>(input + axis.pad_begin, 0);
    return std::min((way + axis.stride - 1) / axis.stride, axis.out);
  };
  const int64_t begin = reaches(0), end = reaches(axis.in);
  for (int64_t o = 0; o < begin; ++o) {
    if (axis.taps_inside(o).count == 0) return true;
  }
  for (int64_t o = end; o < axis.out; ++o) {
    if (axis.taps_inside(o).count == 0) return true;
  }
  return false;
}

}  // namespace

void WindowLists::add(const WindowAxis& axis, int64_t pad_end) {
  strides.push_back(axis.stride);
  dilates.push_back(axis.dilation - 1);
  pads_begin.push_back(axis.pad_begin);
  pads_end.push_back(pad_end);
}

void WindowLists::add_to(ProblemKind& kind) const {
  for (const dnnl::memory::dims* list : {&strides, &dilates, &pads_begin, &pads_end}) kind.add(*list);
}

dnnl::memory::dims grouped_weights(dnnl::memory::dims dims, int64_t groups) {
  if (groups == 1) return dims;
  dims[0] /= groups;
  dims.insert(dims.begin(), groups);
  return dims;
}

ConvWindows::ConvWindows(const Attributes& attributes, const Dims& x, const Dims& w) {
  const auto axes =
      resolve_windows(window_spec(attributes, Dims(w.begin() + 2, w.end())), std::span<const int64_t>(x).subspan(2));
  for (const WindowAxis& axis : axes) {
    add(axis, axis.pad_end);
    has_empty = has_empty || has_empty_window(axis);
  }
}

bool ConvWindows::is_column(const dnnl::memory::dims& x, const dnnl::memory::dims& w,
                            const dnnl::memory::dims& y) const {
  if (strides.size() != 2 || pads_begin[1] != 0 || pads_end[1] != 0) return false;
  return x.back() == 1 && w.back() == 1 && y.back() == 1 && x[2] > 1;
}

void ConvWindows::add_extents(ProblemKind& kind, const dnnl::memory::dims& x, const dnnl::memory::dims& w,
                              const dnnl::memory::dims& y) const {
  constexpr int64_t kSmall = 4;
  kind.add_magnitudes({x[0]});
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    const int64_t extent = x[axis + 2];
    const int64_t window = (w[w.size() - strides.size() + axis] - 1) * (dilates[axis] + 1) + 1;
    const int64_t way = extent + pads_begin[axis] + pads_end[axis] - window;  // of the window
    kind.add(std::min(extent, std::max(window, kSmall))).add(std::min(y[axis + 2], kSmall)).add(way % strides[axis]);
  }
}

void ConvWindows::swap_axes() {
  for (dnnl::memory::dims* list : {&strides, &dilates, &pads_begin, &pads_end}) std::swap((*list)[0], (*list)[1]);
}

}  // namespace autograph::onednn
