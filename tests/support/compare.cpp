#include "support/compare.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "tensor/element_types.h"

namespace autograph {
namespace {

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (const double v : values) {
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  }
  return largest;
}

bool close(double actual, double expected, const FloatTolerance& tolerance) {
  if (std::isnan(actual) || std::isnan(expected)) return std::isnan(actual) && std::isnan(expected);
  if (actual == expected) return true;
  return std::fabs(actual - expected) <= tolerance.atol + tolerance.rtol * std::fabs(expected);
}

std::string tensor_difference(const Tensor& actual, const Tensor& expected, const FloatTolerance& tolerance) {
  if (actual.dtype() != expected.dtype() || actual.dims() != expected.dims()) {
    return fmt::format("type {} instead of {}", to_string(actual.type()), to_string(expected.type()));
  }
  if (dtypes::kString.contains(actual.dtype()) || dtypes::kComplex.contains(actual.dtype())) {
    return actual.bitwise_equal(expected) ? "" : "elements differ";
  }
  const std::vector<double> a = actual.to_f64();
  const std::vector<double> e = expected.to_f64();
  FloatTolerance absolute = tolerance;
  absolute.atol += tolerance.share * largest_of(e);
  for (size_t i = 0; i < a.size(); ++i) {
    if (!close(a[i], e[i], absolute)) return fmt::format("element {}: {} instead of {}", i, a[i], e[i]);
  }
  return "";
}

}  // namespace

std::string difference(const Datum& actual, const Datum& expected, const FloatTolerance& tolerance) {
  if (actual.is_tensor() && expected.is_tensor()) {
    return tensor_difference(actual.tensor(), expected.tensor(), tolerance);
  }
  if (actual.is_sequence() && expected.is_sequence()) {
    return difference(actual.sequence(), expected.sequence(), tolerance);
  }
  return actual.is_present() || expected.is_present() ? "different kinds of value" : "";
}

std::string difference(const std::vector<Datum>& actual, const std::vector<Datum>& expected,
                       const FloatTolerance& tolerance) {
  if (actual.size() != expected.size()) return fmt::format("{} values instead of {}", actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const std::string text = difference(actual[i], expected[i], tolerance);
    if (!text.empty()) return fmt::format("value {}: {}", i, text);
  }
  return "";
}

}  // namespace autograph
