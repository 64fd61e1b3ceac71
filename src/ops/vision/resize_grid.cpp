#include "ops/vision/resize_grid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "tensor/element_types.h"

namespace autograph {
namespace {

// Files say "not given" with an empty tensor, too.
bool is_given(const TensorView& view) { return view.is_present() && view.num_elements() > 0; }

// A coordinate of a region, rounded to f32 where ONNX's reference evaluator does: the start of 0.2 of 5 steps is 1, not
// the 1.00000001 of f32's 0.2, which `ceil` would take to the next element.
double region_coordinate(const ResizeAxis& r, double full, int64_t o) {
  const auto start = static_cast<float>(r.start), end = static_cast<float>(r.end);
  const auto last = static_cast<float>(r.in - 1);
  const auto width = static_cast<double>(end - start);
  const auto first = static_cast<double>(start * last);
  if (full == 1) return static_cast<double>((end - start) * last / 2) + first;
  return static_cast<double>(o) * width * static_cast<double>(r.in - 1) / (full - 1) + first;
}

// scale * in; the extent itself where a size gave the scale, so that only rounding lies between.
double full_extent(const ResizeAxis& r) {
  const double full = r.scale * static_cast<double>(r.in), out = static_cast<double>(r.out);
  return std::fabs(full - out) <= 2 * std::numeric_limits<double>::epsilon() * out ? out : full;
}

// Divides by the parts of the scale: 4.5 / (9 / 14) is 7, of which the rounded scale leaves 6.999999999999999.
double input_coordinate(const std::string& mode, const ResizeAxis& r, int64_t o) {
  const double full = full_extent(r);
  const auto at = static_cast<double>(o), in = static_cast<double>(r.in), last = in - 1;
  const double half_pixel = (at + 0.5) * in / full - 0.5;
  if (mode == "half_pixel") return half_pixel;
  if (mode == "half_pixel_symmetric") {
    return half_pixel + in / 2 * (1 - static_cast<double>(r.out) / full);
  }
  if (mode == "pytorch_half_pixel") return r.out > 1 ? half_pixel : 0;
  if (mode == "align_corners") return full == 1 ? 0 : at * last / (full - 1);
  if (mode == "asymmetric") return at * in / full;
  return region_coordinate(r, full, o);
}

double cubic_filter(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((x - 5) * x + 8) * x * a - 4 * a;
  return 0;
}

int64_t round_coordinate(double c, const std::string& nearest_mode) {
  if (nearest_mode == "floor") return static_cast<int64_t>(std::floor(c));
  if (nearest_mode == "ceil") return static_cast<int64_t>(std::ceil(c));
  return static_cast<int64_t>(nearest_mode == "round_prefer_ceil" ? std::floor(c + 0.5) : std::ceil(c - 0.5));
}

ResizeMix mix_neighbours(const Attributes& attributes, const ResizeAxis& r, double c) {
  const bool cubic = attributes.text("mode") == "cubic";
  const double a = attributes.real("cubic_coeff_a");
  const double squeeze = attributes.flag("antialias") ? std::min(r.scale, 1.0) : 1.0;
  const auto first = static_cast<int64_t>(std::floor((cubic ? -2 : -1) / squeeze)) + 1;
  // The element left of c, so that the fraction lies in (0, 1].
  const double left = std::ceil(c) - 1;
  ResizeMix mix;
  double sum = 0;
  for (int64_t i = first; i < 2 - first; ++i) {
    const double distance = (static_cast<double>(i) - (c - left)) * squeeze;
    double weight = cubic ? cubic_filter(distance, a) : std::max(0.0, 1 - std::fabs(distance));
    const int64_t index = static_cast<int64_t>(left) + i;
    if (attributes.flag("exclude_outside") && (index < 0 || index >= r.in)) weight = 0;
    mix.taps.emplace_back(std::clamp<int64_t>(index, 0, r.in - 1), weight);
    sum += weight;
  }
  const bool normalise = attributes.flag("antialias") || attributes.flag("exclude_outside");
  for (auto& tap : mix.taps) tap.second /= normalise && sum != 0 ? sum : 1.0;
  return mix;
}

}  // namespace

Dims resized_axes(const Attributes& attributes, int64_t rank) {
  Dims axes = attributes.get_or<Dims>("axes", {});
  if (!attributes.contains("axes")) {
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  for (int64_t& axis : axes) {
    if (axis < 0) axis += rank;
  }
  return axes;
}

double common_resize_scale(bool not_larger, const Dims& sizes, const std::vector<int64_t>& in) {
  double scale = not_larger ? std::numeric_limits<double>::infinity() : 0.0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const double own = static_cast<double>(sizes[i]) / static_cast<double>(in[i]);
    scale = not_larger ? std::min(scale, own) : std::max(scale, own);
  }
  return scale;
}

std::vector<ResizeAxis> resize_axes(const Attributes& attributes, std::span<const int64_t> x,
                                    std::span<const int64_t> y, const ResizeInputs& inputs) {
  const TensorView& scales = inputs.scales;
  const TensorView& roi = inputs.roi;
  const Dims axes = resized_axes(attributes, static_cast<int64_t>(x.size()));
  std::vector<ResizeAxis> resolved(x.size());
  for (size_t axis = 0; axis < x.size(); ++axis) {
    resolved[axis].in = x[axis];
    resolved[axis].out = y[axis];
  }
  Dims sizes;
  Dims in;
  for (size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& r = resolved[static_cast<size_t>(axes[i])];
    if (is_given(scales)) {
      r.scale = static_cast<double>(scales.data<float>()[i]);
    } else {
      r.scale = static_cast<double>(r.out) / static_cast<double>(r.in);
      sizes.push_back(inputs.sizes.data<int64_t>()[i]);
      in.push_back(r.in);
    }
  }
  const std::string& policy = attributes.text("keep_aspect_ratio_policy");
  if (!is_given(scales) && policy != "stretch") {
    const double scale = common_resize_scale(policy == "not_larger", sizes, in);
    for (const int64_t axis : axes) resolved[static_cast<size_t>(axis)].scale = scale;
  }
  if (is_given(roi)) {
    dispatch<FloatTypes>(roi.dtype(), [&]<class T>(TypeTag<T>) {
      const T* bounds = roi.data<T>();
      for (size_t i = 0; i < axes.size(); ++i) {
        resolved[static_cast<size_t>(axes[i])].start = static_cast<double>(bounds[i]);
        resolved[static_cast<size_t>(axes[i])].end = static_cast<double>(bounds[i + axes.size()]);
      }
    });
  }
  return resolved;
}

std::vector<ResizeMix> resize_mixes(const Attributes& attributes, const ResizeAxis& r) {
  const std::string& transform = attributes.text("coordinate_transformation_mode");
  std::vector<ResizeMix> mixes(static_cast<size_t>(r.out));
  for (int64_t o = 0; o < r.out; ++o) {
    const double raw = input_coordinate(transform, r, o);
    const bool inside = raw >= 0 && raw <= static_cast<double>(r.in - 1);
    if (transform == "tf_crop_and_resize" && !inside) continue;
    // Far outside, every coordinate reads the edge; the bound keeps the conversion to integers defined.
    const double c = std::isnan(raw)
                         ? 0
                         : std::clamp(raw, -4.0 * static_cast<double>(r.in) - 4, 5.0 * static_cast<double>(r.in) + 4);
    ResizeMix& mix = mixes[static_cast<size_t>(o)];
    if (attributes.text("mode") == "nearest") {
      const int64_t index = round_coordinate(c, attributes.text("nearest_mode"));
      mix.taps.emplace_back(std::clamp<int64_t>(index, 0, r.in - 1), 1.0);
    } else {
      mix = mix_neighbours(attributes, r, c);
    }
  }
  return mixes;
}

}  // namespace autograph
