#include "optimize/weight_scaling.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "autograph/op_def.h"
#include "base/parallel_for.h"
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

// Elements that a thread scales at a time, and how many threads do.
constexpr size_t kPiece = size_t{1} << 18;
constexpr int kThreads = 2;

int64_t elements_behind(const Tensor& tensor, int64_t axis) {
  int64_t count = 1;
  for (int64_t a = axis + 1; a < tensor.rank(); ++a) count *= tensor.dims()[static_cast<size_t>(a)];
  return count;
}

// Elements of one channel that lie together.
struct Runs {
  Runs(const Tensor& weights, int64_t axis)
      : length(static_cast<size_t>(elements_behind(weights, axis))),
        count(length == 0 ? 0 : static_cast<size_t>(weights.num_elements()) / length) {}

  size_t length = 0;
  size_t count = 0;
};

// Its bits, which order magnitudes as they are; those of NaN are the largest.
uint32_t largest_magnitude(std::span<const float> elements) {
  uint32_t largest = 0;
  for (const float x : elements) largest = std::max(largest, std::bit_cast<uint32_t>(x) & 0x7fffffffU);
  return largest;
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
  Tensor result = Tensor::empty(DType::f32, weights.dims());
  const float* from = weights.data<float>();
  float* to = result.mutable_data<float>();
  const Runs runs(weights, axis);
  const size_t runs_of_piece = 1 + kPiece / (1 + runs.length);
  // Large ones are written on several threads: most of the time goes into memory that nobody has touched.
  parallel_for((runs.count + runs_of_piece - 1) / runs_of_piece, kThreads, [&](size_t piece) {
    const size_t end = std::min(runs.count, (piece + 1) * runs_of_piece);
    for (size_t run = piece * runs_of_piece; run < end; ++run) {
      const double factor = factors[run % factors.size()];
      for (size_t i = run * runs.length; i < (run + 1) * runs.length; ++i) to[i] = static_cast<float>(from[i] * factor);
    }
  });
  return result;
}

bool may_scale_weights(const Tensor& weights, int64_t axis, std::span<const double> factors,
                       std::span<const float> shifts) {
  const std::span<const float> elements = weights.elements<float>();
  const Runs runs(weights, axis);
  std::vector<uint32_t> largest(factors.size(), 0);
  for (size_t run = 0; run < runs.count; ++run) {
    uint32_t& of_channel = largest[run % factors.size()];
    of_channel = std::max(of_channel, largest_magnitude(elements.subspan(run * runs.length, runs.length)));
  }
  for (size_t c = 0; c < factors.size(); ++c) {
    const double magnitude = std::bit_cast<float>(largest[c]);
    if (!fits(magnitude, factors[c], shifts.empty() ? 0.0 : shifts[c])) return false;
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
