#include "support/agreement.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

namespace autograph {
namespace {

constexpr int kRounds = 3;
constexpr double kTimesMovement = 20;

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

// Outputs with sequences laid out flat, and options opened: one entry per tensor; absent ones stay as empty tensors.
void append_tensors(const Datum& datum, std::vector<Tensor>& tensors) {
  if (!datum.is_sequence()) {
    tensors.push_back(datum.is_present() ? datum.tensor() : Tensor());
    return;
  }
  for (const Datum& item : datum.sequence()) append_tensors(item, tensors);
}

std::vector<Tensor> all_tensors(const std::vector<Datum>& datums) {
  std::vector<Tensor> tensors;
  for (const Datum& datum : datums) append_tensors(datum, tensors);
  return tensors;
}

std::string describe(const Tensor& tensor) { return tensor.is_present() ? to_string(tensor.type()) : "nothing"; }

// Of what a loop of no turns would have stacked, the reference knows as many extents as the body tells, and makes the
// others 0; a plan that knows more of them may say so. Nothing can be read from either.
bool knows_more(const Tensor& a, const Tensor& b) {
  if (a.num_elements() != 0 || b.num_elements() != 0 || a.rank() != b.rank()) return false;
  const auto told = [](int64_t extent, int64_t other) { return extent == other || other == 0; };
  return std::equal(a.dims().begin(), a.dims().end(), b.dims().begin(), told);
}

bool same_type(const Tensor& a, const Tensor& b) {
  if (a.is_present() != b.is_present()) return false;
  return !a.is_present() || (a.dtype() == b.dtype() && (a.dims() == b.dims() || knows_more(a, b)));
}

// What elements of one tensor may differ by where nothing moves them: relative to the element, and to the largest of
// the tensor. Integers are exact.
struct Slack {
  Slack(const Tensor& expected, const std::vector<double>& values) {
    const DType dtype = expected.dtype();
    if (!dtypes::kFloat.contains(dtype)) return;
    rtol = is_half(dtype) ? 2e-2 : 1e-4;
    for (const double value : values) {
      if (std::isfinite(value)) atol = std::fmax(atol, std::fabs(value));
    }
    atol = atol * (is_half(dtype) ? 5e-3 : 2e-6) + kNothing;
    huge = dtype == DType::f16 ? 6.4e4 : dtype == DType::f64 ? 1e307 : 1e37;
  }
  double of(double value) const { return atol + rtol * std::fabs(value); }

  double rtol = 0;
  double atol = 0;
  double huge = std::numeric_limits<double>::infinity();  // as good as infinite: rounding may decide between the two
};

// What an element may be, by the runs of the reference.
class Range {
 public:
  Range(double expected, const Slack& slack) : expected_(expected), slack_(slack) { allow(expected); }

  /// What the reference gives on the moved graph.
  void move(double other) {
    if (!std::isfinite(other) || !std::isfinite(expected_)) return allow(other);
    movement_ = std::fmax(movement_, std::fabs(other - expected_));
  }

  /// What it also may be.
  void allow(double other) {
    may_be_nan_ = may_be_nan_ || std::isnan(other);
    may_be_huge_ = may_be_huge_ || other >= slack_.huge;
    may_be_low_ = may_be_low_ || other <= -slack_.huge;
    if (!std::isfinite(other)) return;
    low_ = std::fmin(low_, other);
    high_ = std::fmax(high_, other);
  }

  bool contains(double actual) const {
    if (std::isnan(actual)) return may_be_nan_;
    if ((may_be_huge_ && actual >= slack_.huge) || (may_be_low_ && actual <= -slack_.huge)) return true;
    const double reach = kTimesMovement * movement_;
    return actual >= low_ - slack_.of(low_) - reach && actual <= high_ + slack_.of(high_) + reach;
  }

 private:
  double expected_;
  const Slack& slack_;
  double movement_ = 0;
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -low_;
  bool may_be_nan_ = false, may_be_huge_ = false, may_be_low_ = false;
};

// Looks at the results of moved runs where there is a difference.
class Comparison {
 public:
  explicit Comparison(const MoveRuns& move) : move_(move) {}

  std::string tensors(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
    if (actual.size() != expected.size())
      return fmt::format("{} tensors instead of {}", actual.size(), expected.size());
    for (size_t k = 0; k < expected.size(); ++k) {
      const std::string difference = tensor(k, actual[k], expected[k]);
      if (!difference.empty()) return fmt::format("tensor {}: {}", k, difference);
    }
    return "";
  }

 private:
  using Runs = std::vector<std::vector<Tensor>>;

  // Has the runs of `rounds` rounds.
  void ask(int rounds) {
    for (; rounds_ < rounds; ++rounds_) {
      const MovedRuns runs = move_(rounds_);
      for (const auto& run : runs.moved) moved_.push_back(all_tensors(run));
      for (const auto* others : {&runs.wide, &runs.without_nan, &runs.padded, &runs.hidden}) {
        for (const auto& run : *others) wide_.push_back(all_tensors(run));
      }
    }
  }

  // Does the type of tensor `k` follow an ill-conditioned value?
  bool type_moves(size_t k, const Tensor& expected) {
    ask(kRounds);
    const auto differs = [&](const auto& run) { return k >= run.size() || !same_type(run[k], expected); };
    return std::any_of(moved_.begin(), moved_.end(), differs) || std::any_of(wide_.begin(), wide_.end(), differs);
  }

  // "" when what is chosen for tensor `k` follows an ill-conditioned value.
  std::string choice_moves(size_t k, const Tensor& expected) {
    ask(kRounds);
    const bool moves = std::any_of(moved_.begin(), moved_.end(),
                                   [&](const auto& run) { return k >= run.size() || !run[k].bitwise_equal(expected); });
    return moves ? "" : "elements of " + describe(expected) + " differ";
  }

  std::string tensor(size_t k, const Tensor& actual, const Tensor& expected) {
    if (!same_type(actual, expected)) {
      return type_moves(k, expected) ? "" : describe(actual) + " instead of " + describe(expected);
    }
    if (!expected.is_present() || actual.bitwise_equal(expected)) return "";
    // Ops move texts and complex numbers about, and do not compute with them.
    if ((dtypes::kComplex | dtypes::kString).contains(expected.dtype())) return choice_moves(k, expected);
    return elements(k, actual, expected);
  }

  std::string elements(size_t k, const Tensor& actual, const Tensor& expected) {
    const std::vector<double> a = actual.to_f64();
    const std::vector<double> e = expected.to_f64();
    const Slack slack(expected, e);
    std::vector<size_t> apart;
    for (size_t i = 0; i < e.size(); ++i) {
      if (!Range(e[i], slack).contains(a[i])) apart.push_back(i);
    }
    for (int round = 1; round <= kRounds && !apart.empty(); ++round) {
      ask(round);
      apart = unexplained(k, apart, a, e, slack);
    }
    if (apart.empty() || type_moves(k, expected)) return "";
    const size_t i = apart.front();
    return fmt::format("element {}: {:.9g} instead of {:.9g}", i, a[i], e[i]);
  }

  // Those of the elements `apart` that the runs so far do not account for.
  std::vector<size_t> unexplained(size_t k, const std::vector<size_t>& apart, const std::vector<double>& actual,
                                  const std::vector<double>& expected, const Slack& slack) const {
    std::vector<Range> ranges;
    for (const size_t i : apart) ranges.emplace_back(expected[i], slack);
    const auto each = [&](const Runs& runs, void (Range::*note)(double)) {
      for (const auto& run : runs) {
        if (k >= run.size() || !run[k].is_present() || run[k].num_elements() != std::ssize(expected)) continue;
        const std::vector<double> values = run[k].to_f64();
        for (size_t n = 0; n < apart.size(); ++n) (ranges[n].*note)(values[apart[n]]);
      }
    };
    each(moved_, &Range::move);
    each(wide_, &Range::allow);
    std::vector<size_t> rest;
    for (size_t n = 0; n < apart.size(); ++n) {
      if (!ranges[n].contains(actual[apart[n]])) rest.push_back(apart[n]);
    }
    return rest;
  }

  const MoveRuns& move_;
  int rounds_ = 0;
  Runs moved_;
  Runs wide_;  // and without NaN, padded, and with what is hidden
};

}  // namespace

std::string disagreement(const std::vector<Datum>& actual, const std::vector<Datum>& expected, const MoveRuns& move) {
  return Comparison(move).tensors(all_tensors(actual), all_tensors(expected));
}

std::string disagreement(const std::vector<Datum>& actual, const std::vector<Datum>& expected, const TestGraph& test) {
  const MoveRuns move = [&](int round) { return run_moved(test, round); };
  return disagreement(actual, expected, move);
}

}  // namespace autograph
