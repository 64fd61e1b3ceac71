#include "autograph/compare_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace autograph {
namespace {

Difference mismatch(std::string why) {
  Difference difference;
  difference.ok = false;
  difference.num_bad = 1;
  difference.why = std::move(why);
  return difference;
}

// Floats as f64; complex numbers as pairs.
std::vector<double> numbers(const Tensor& tensor) {
  std::vector<double> result;
  const auto split = [&]<class T>(std::span<const T> elements) {
    for (const T& z : elements) {
      result.push_back(static_cast<double>(z.real()));
      result.push_back(static_cast<double>(z.imag()));
    }
  };
  if (tensor.dtype() == DType::c64) {
    split(tensor.elements<std::complex<float>>());
  } else if (tensor.dtype() == DType::c128) {
    split(tensor.elements<std::complex<double>>());
  } else {
    result = tensor.to_f64();
  }
  return result;
}

bool is_inexact(DType dtype) {
  return dtypes::kFloat.contains(dtype) || dtypes::kFloat8.contains(dtype) || dtypes::kComplex.contains(dtype);
}

Difference compare_numbers(const std::vector<double>& actual, const std::vector<double>& expected,
                           Tolerance tolerance) {
  double scale = 0;
  for (const double e : expected) {
    if (std::isfinite(e)) scale = std::max(scale, std::fabs(e));
  }
  const double atol = tolerance.atol < 0 ? tolerance.share * scale : tolerance.atol;
  Difference difference;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double a = actual[i];
    const double e = expected[i];
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    const double apart = std::fabs(a - e);
    const bool finite = std::isfinite(apart);
    difference.max_abs = std::max(difference.max_abs, finite ? apart : std::numeric_limits<double>::infinity());
    if (finite && apart <= atol + tolerance.rtol * std::fabs(e)) continue;
    if (difference.ok) difference.why = fmt::format("element {}: expected {:.6g}, got {:.6g}", i, e, a);
    difference.ok = false;
    ++difference.num_bad;
  }
  difference.max_rel = scale > 0 ? difference.max_abs / scale : difference.max_abs;
  return difference;
}

Difference compare_tensors(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance) {
  if (actual.dtype() != expected.dtype() || actual.dims() != expected.dims()) {
    return mismatch(fmt::format("expected {}, got {}", to_string(expected.type()), to_string(actual.type())));
  }
  if (expected.dtype() == DType::string) {
    return actual.bitwise_equal(expected) ? Difference() : mismatch("strings differ");
  }
  const bool is_byte = expected.dtype() == DType::i8 || expected.dtype() == DType::u8;
  const Tolerance exact{.rtol = 0, .atol = is_byte ? tolerance.byte_steps : 0};
  return compare_numbers(numbers(actual), numbers(expected), is_inexact(expected.dtype()) ? tolerance : exact);
}

Difference compare_lists(const std::vector<Datum>& actual, const std::vector<Datum>& expected,
                         const Tolerance& tolerance, const char* what) {
  if (actual.size() != expected.size()) {
    return mismatch(fmt::format("expected {} {}s, got {}", expected.size(), what, actual.size()));
  }
  Difference worst;
  for (size_t i = 0; i < expected.size(); ++i) {
    const Difference one = compare_values(actual[i], expected[i], tolerance);
    worst.max_abs = std::max(worst.max_abs, one.max_abs);
    worst.max_rel = std::max(worst.max_rel, one.max_rel);
    worst.num_bad += one.num_bad;
    if (worst.ok && !one.ok) worst.why = fmt::format("in {} {}: {}", what, i, one.why);
    worst.ok = worst.ok && one.ok;
  }
  return worst;
}

}  // namespace

Difference compare_values(const Datum& actual, const Datum& expected, const Tolerance& tolerance) {
  if (actual.is_tensor() && expected.is_tensor()) return compare_tensors(actual.tensor(), expected.tensor(), tolerance);
  if (!actual.is_present() && !expected.is_present()) return {};
  if (!actual.is_sequence() || !expected.is_sequence()) return mismatch("one is a tensor, the other is not");
  return compare_lists(actual.sequence(), expected.sequence(), tolerance, "element");
}

Difference compare_all(const std::vector<Datum>& actual, const std::vector<Datum>& expected,
                       const Tolerance& tolerance) {
  return compare_lists(actual, expected, tolerance, "value");
}

}  // namespace autograph
