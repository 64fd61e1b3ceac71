#include "cost/fit_alpha.h"

#include <algorithm>

namespace autograph {
namespace {

constexpr size_t kMinSamples = 8;
// Of the normal equations' determinant over the product of their diagonal: 0 where the critical path is the same part
// of the sum in all samples.
constexpr double kMinIndependence = 1e-4;

}  // namespace

std::optional<double> fit_alpha(std::span<const LatencySample> samples) {
  double cc = 0;
  double cs = 0;
  double ss = 0;
  double c1 = 0;
  double s1 = 0;
  size_t count = 0;
  for (const LatencySample& sample : samples) {
    if (sample.latency_us <= 0) continue;
    ++count;
    const double c = sample.critical_us / sample.latency_us;
    const double s = sample.sum_us / sample.latency_us;
    cc += c * c;
    cs += c * s;
    ss += s * s;
    c1 += c;
    s1 += s;
  }
  const double determinant = cc * ss - cs * cs;
  if (count < kMinSamples || determinant <= kMinIndependence * cc * ss) return std::nullopt;
  const double a = (c1 * ss - s1 * cs) / determinant;
  const double b = (s1 * cc - c1 * cs) / determinant;
  // Where one of the two would be negative, the fit with the other alone is the least one.
  if (a <= 0) return 0;
  if (b <= 0) return kMaxAlpha;
  return std::min(a / b, kMaxAlpha);
}

}  // namespace autograph
