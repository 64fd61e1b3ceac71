#include "optimize/weight_scaling.h"

#include <algorithm>
#include <cmath>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"

namespace autograph {
namespace {

// Of the largest weight of a channel. The margins to the range of f32 are for sums of products on the one side, and for
// smaller weights on the other.
constexpr double kLargest = 1e30;
constexpr double kSmallest = 1e-30;
// Times what is lost at kSmallest: next to this nothing of it is left in f32, whatever the inputs are.
constexpr double kVisible = 1e-10;

int64_t elements_behind(const Tensor& tensor, int64_t axis) {
  int64_t count = 1;
  for (int64_t a = axis + 1; a < tensor.rank(); ++a) count *= tensor.dims()[static_cast<size_t>(a)];
  return count;
}

// fn(element, channel) for all elements.
template <class Fn>
void for_elements(const Tensor& weights, int64_t axis, size_t channels, const Fn& fn) {
  const auto inner = static_cast<size_t>(elements_behind(weights, axis));
  const auto count = static_cast<size_t>(weights.num_elements());
  for (size_t i = 0, channel = 0; i < count; channel = channel + 1 == channels ? 0 : channel + 1) {
    for (const size_t end = i + inner; i < end; ++i) fn(i, channel);
  }
}

bool fits(double largest, double factor, double shift) {
  if (!std::isfinite(largest) || !std::isfinite(factor) || !std::isfinite(shift)) return false;
  const double scaled = largest * std::fabs(factor);
  if (scaled > kLargest) return false;
  if (largest == 0 || factor == 0) return true;
  return scaled >= kSmallest || std::fabs(factor) >= 1 || std::fabs(shift) >= kVisible;
}

}  // namespace

std::optional<std::vector<double>> per_channel(const Tensor& tensor, int64_t rank, int64_t axis, int64_t channels) {
  if (tensor.rank() > rank) return std::nullopt;
  const int64_t missing = rank - tensor.rank();
  for (int64_t a = 0; a < tensor.rank(); ++a) {
    const int64_t extent = tensor.dims()[static_cast<size_t>(a)];
    if (extent != 1 && (a + missing != axis || extent != channels)) return std::nullopt;
  }
  std::vector<double> values = tensor.to_f64();
  if (values.size() == 1) values.resize(static_cast<size_t>(channels), values.front());
  return values.size() == static_cast<size_t>(channels) ? std::optional(values) : std::nullopt;
}

Tensor scaled_weights(const Tensor& weights, int64_t axis, std::span<const double> factors) {
  Tensor result = weights.clone();
  float* elements = result.mutable_data<float>();
  for_elements(weights, axis, factors.size(),
               [&](size_t i, size_t c) { elements[i] = static_cast<float>(elements[i] * factors[c]); });
  return result;
}

bool may_scale_weights(const Tensor& weights, int64_t axis, std::span<const double> factors,
                       std::span<const float> shifts) {
  const float* elements = weights.data<float>();
  std::vector<double> largest(factors.size(), 0.0);
  for_elements(weights, axis, factors.size(), [&](size_t i, size_t c) {
    const double magnitude = std::fabs(static_cast<double>(elements[i]));
    if (!(magnitude <= largest[c])) largest[c] = magnitude;  // NaN stays
  });
  for (size_t c = 0; c < factors.size(); ++c) {
    if (!fits(largest[c], factors[c], shifts.empty() ? 0.0 : shifts[c])) return false;
  }
  return true;
}

std::optional<BatchStatistics> read_batch_statistics(const Graph& graph, const Node& node) {
  if (&node.op() != &batch_normalization_def() || node.outputs().size() != 1) return std::nullopt;
  if (node.attributes().flag("training_mode")) return std::nullopt;
  for (size_t slot = 1; slot <= 4; ++slot) {
    if (!constant_f32(graph, node.input(slot))) return std::nullopt;
  }
  const auto elements = [&](size_t slot) { return constant_f32(graph, node.input(slot))->elements<float>(); };
  const auto scale = elements(1), var = elements(4);
  const double epsilon = node.attributes().real("epsilon");
  BatchStatistics statistics{{}, elements(3), elements(2)};
  for (size_t c = 0; c < scale.size(); ++c) {
    statistics.factor.push_back(scale[c] / std::sqrt(static_cast<double>(var[c]) + epsilon));
  }
  return statistics;
}

}  // namespace autograph
