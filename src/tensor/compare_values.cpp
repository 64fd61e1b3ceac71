#include "autograph/compare_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace autograph {
namespace {

// Of f32, with room for sums of some.
constexpr double kLeastNormal = 1e-36;
constexpr double kSlack = 1e-6;

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

double largest_of(const std::vector<double>& numbers) {
  double largest = 0;
  for (const double x : numbers) {
    if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
  }
  return largest;
}

// `atol_of(i)`: what element i may differ by, beside rtol.
template <class AtolOf>
Difference compare_numbers(const std::vector<double>& actual, const std::vector<double>& expected, double rtol,
                           const AtolOf& atol_of) {
  const double largest = largest_of(expected);
  Difference difference;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double a = actual[i];
    const double e = expected[i];
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    const double apart = std::fabs(a - e);
    const bool finite = std::isfinite(apart);
    difference.max_abs = std::max(difference.max_abs, finite ? apart : std::numeric_limits<double>::infinity());
    if (finite && apart <= atol_of(i) + rtol * std::fabs(e)) continue;
    if (difference.ok) {
      difference.why = fmt::format("element {}: expected {:.6g}, got {:.6g}", i, e, a);
      difference.first_bad = static_cast<int64_t>(i);
    }
    difference.ok = false;
    ++difference.num_bad;
  }
  difference.max_rel = largest > 0 ? difference.max_abs / largest : difference.max_abs;
  return difference;
}

// Nothing where elements can be compared.
std::optional<Difference> compare_kinds(const Tensor& actual, const Tensor& expected) {
  if (actual.dtype() != expected.dtype() || actual.dims() != expected.dims()) {
    return mismatch(fmt::format("expected {}, got {}", to_string(expected.type()), to_string(actual.type())));
  }
  if (expected.dtype() != DType::string) return std::nullopt;
  return actual.bitwise_equal(expected) ? Difference() : mismatch("strings differ");
}

double byte_steps(const Tensor& expected, const Tolerance& tolerance) {
  return expected.dtype() == DType::i8 || expected.dtype() == DType::u8 ? tolerance.byte_steps : 0;
}

Difference compare_tensors(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance) {
  if (const auto difference = compare_kinds(actual, expected)) return *difference;
  const std::vector<double> right = numbers(expected);
  double atol = byte_steps(expected, tolerance);
  const bool inexact = is_inexact(expected.dtype());
  if (inexact) atol = tolerance.atol < 0 ? tolerance.share * largest_of(right) : tolerance.atol;
  return compare_numbers(numbers(actual), right, inexact ? tolerance.rtol : 0, [&](size_t) { return atol; });
}

Difference compare_lists(const std::vector<Datum>& actual, const std::vector<Datum>& expected,
                         const Tolerance& tolerance, const char* what) {
  if (actual.size() != expected.size()) {
    return mismatch(fmt::format("expected {} {}s, got {}", expected.size(), what, actual.size()));
  }
  std::vector<Difference> differences;
  for (size_t i = 0; i < expected.size(); ++i) {
    differences.push_back(compare_values(actual[i], expected[i], tolerance));
  }
  return worst_of(differences, what);
}

}  // namespace

Difference compare_values(const Datum& actual, const Datum& expected, const Tolerance& tolerance) {
  if (actual.is_tensor() && expected.is_tensor()) return compare_tensors(actual.tensor(), expected.tensor(), tolerance);
  if (!actual.is_present() && !expected.is_present()) return {};
  if (!actual.is_sequence() || !expected.is_sequence()) return mismatch("one is a tensor, the other is not");
  return compare_lists(actual.sequence(), expected.sequence(), tolerance, "element");
}

Difference compare_values(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance,
                          const Tensor& scale) {
  if (tolerance.atol >= 0 || dtypes::kComplex.contains(expected.dtype())) {
    return compare_tensors(actual, expected, tolerance);
  }
  if (const auto difference = compare_kinds(actual, expected)) return *difference;
  const double* scales = scale.is_present() ? scale.data<double>() : nullptr;
  // Whether what is smaller than the least normal number is kept or becomes 0 is up to the processor's mode. A share
  // that is a step of an integer must do for that step.
  const bool inexact = is_inexact(expected.dtype());
  const double least = inexact ? kLeastNormal : byte_steps(expected, tolerance);
  const double share = tolerance.share * (1 + kSlack);
  return compare_numbers(numbers(actual), numbers(expected), inexact ? tolerance.rtol : 0,
                         [&](size_t i) { return std::max(least, scales ? share * scales[i] : 0); });
}

Difference compare_all(const std::vector<Datum>& actual, const std::vector<Datum>& expected,
                       const Tolerance& tolerance) {
  return compare_lists(actual, expected, tolerance, "value");
}

Difference worst_of(const std::vector<Difference>& differences, const char* what) {
  Difference worst;
  for (size_t i = 0; i < differences.size(); ++i) {
    const Difference& one = differences[i];
    worst.max_abs = std::max(worst.max_abs, one.max_abs);
    worst.max_rel = std::max(worst.max_rel, one.max_rel);
    worst.num_bad += one.num_bad;
    if (worst.ok && !one.ok) {
      worst.why = fmt::format("in {} {}: {}", what, i, one.why);
      worst.first_bad = one.first_bad;
    }
    worst.ok = worst.ok && one.ok;
  }
  return worst;
}

}  // namespace autograph
