#include "ops/shape/pad_positions.h"

#include <algorithm>
#include <numeric>

#include "ops/shape/axes.h"

namespace autograph {
namespace {

// Position in 0..extent-1 from which output position `at` (0 = first kept element) is taken; -1: the constant.
int64_t source_position(const std::string& mode, int64_t at, int64_t extent) {
  if (at >= 0 && at < extent) return at;
  if (mode == "constant") return -1;
  if (mode == "edge") return std::clamp<int64_t>(at, 0, extent - 1);
  if (mode == "wrap") return (at % extent + extent) % extent;
  if (extent == 1) return 0;
  const int64_t period = 2 * (extent - 1);
  const int64_t phase = (at % period + period) % period;
  return phase < extent ? phase : period - phase;
}

}  // namespace

std::vector<std::vector<int64_t>> pad_positions(const std::string& mode, std::span<const int64_t> x,
                                                std::span<const int64_t> y, const TensorView& pads_input,
                                                const TensorView& axes_input) {
  const std::vector<int64_t> pads = read_integers(pads_input);
  std::vector<int64_t> axes(x.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (axes_input.is_present()) axes = read_integers(axes_input);
  std::vector<std::vector<int64_t>> positions(x.size());
  for (size_t a = 0; a < positions.size(); ++a) {
    positions[a].resize(static_cast<size_t>(y[a]));
    std::iota(positions[a].begin(), positions[a].end(), 0);
  }
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(front_axis(axes[k], static_cast<int64_t>(x.size())));
    const int64_t begin = pads[k];
    const int64_t cropped = std::min<int64_t>(begin, 0);
    const int64_t kept = x[axis] + cropped + std::min<int64_t>(pads[k + axes.size()], 0);
    for (size_t i = 0; i < positions[axis].size(); ++i) {
      const int64_t at = source_position(mode, static_cast<int64_t>(i) - std::max<int64_t>(begin, 0), kept);
      positions[axis][i] = at < 0 ? -1 : at - cropped;
    }
  }
  return positions;
}

}  // namespace autograph
