#include "backends/cpu/quantize/quantized_cost.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "ops/window/window_geometry.h"

namespace autograph {
namespace {

// Products in a nanosecond.
constexpr double kPairsPerNs = 80, kQuadsPerNs = 115, kFloatsPerNs = 47;

double product_of(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), 1.0, [](double a, int64_t b) { return a * static_cast<double>(b); });
}

// How much is gained by Winograd's algorithm, its transforms counted: with three taps and strides of one.
double saved_by_winograd(const QuantizedCall& conv, const std::vector<WindowAxis>& axes) {
  constexpr int64_t kFewChannels = 8;
  if (axes.size() > 2 || std::min(conv.w_dims[0], conv.w_dims[1]) < kFewChannels) return 1;
  for (const WindowAxis& axis : axes) {
    if (axis.kernel != 3 || axis.stride != 1 || axis.dilation != 1) return 1;
  }
  return axes.size() == 2 ? 2 : 1.4;
}

}  // namespace

QuantizedCost::QuantizedCost(const QuantizedCall& product, bool has_vnni)
    : has_vnni_(has_vnni),
      x_elements_(product_of(product.x_dims)),
      y_elements_(product_of(product.y_dims)),
      rows_(y_elements_ / static_cast<double>(product.num_channels())),
      depth_(product.is_conv() ? product_of(product.w_dims) / static_cast<double>(product.num_channels())
                               : static_cast<double>(product.x_dims.back())) {
  if (!product.is_conv()) return;
  const std::vector<WindowAxis> axes =
      resolve_windows(window_spec(*product.attributes, Dims(product.w_dims.begin() + 2, product.w_dims.end())),
                      std::span<const int64_t>(product.x_dims).subspan(2));
  for (size_t a = 0; a + 1 < axes.size(); ++a) runs_ *= static_cast<double>(axes[a].kernel);
  x_elements_ = rows_ * static_cast<double>(product.x_dims[1]);
  for (const WindowAxis& axis : axes) x_elements_ *= static_cast<double>(axis.stride);
  saved_ = saved_by_winograd(product, axes);
}

double QuantizedCost::integer_ns() const {
  constexpr double kRowNs = 10, kRunNs = 8, kByteNs = 0.2, kFinishNs = 0.45;
  const double prepared = rows_ * (kRowNs + kRunNs * runs_ + kByteNs * depth_);
  return prepared + y_elements_ * (kFinishNs + depth_ / (has_vnni_ ? kQuadsPerNs : kPairsPerNs));
}

double QuantizedCost::float_ns() const {
  constexpr double kDequantizeNs = 0.3, kQuantizeNs = 0.55;
  if (has_vnni_) return std::numeric_limits<double>::infinity();
  return x_elements_ * kDequantizeNs + y_elements_ * (kQuantizeNs + depth_ / (kFloatsPerNs * saved_));
}

}  // namespace autograph
