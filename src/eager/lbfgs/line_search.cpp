#include "eager/lbfgs/line_search.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace autograph {
namespace {

constexpr double kDecrease = 1e-4;  // share of the slope at the start by which the value must fall
constexpr double kFlatness = 0.9;   // share of it that the slope may still have

// The minimum of the cubic through two points with their slopes, kept within bounds; their middle where it has none.
double interpolate(const LinePoint& a, const LinePoint& b, double lowest, double highest) {
  const LinePoint& left = a.at <= b.at ? a : b;
  const LinePoint& right = a.at <= b.at ? b : a;
  const double d1 = left.slope + right.slope - 3 * (left.value - right.value) / (left.at - right.at);
  const double square = d1 * d1 - left.slope * right.slope;
  if (!(square >= 0)) return (lowest + highest) / 2;
  const double d2 = std::sqrt(square);
  const double share = (right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2);
  return std::min(std::max(right.at - (right.at - left.at) * share, lowest), highest);
}

class Search {
 public:
  Search(FunctionRef<LinePoint(double)> evaluate, const LinePoint& start, double shortest, int64_t max_tries)
      : evaluate_(evaluate), start_(start), shortest_(shortest), max_tries_(max_tries) {}

  // Goes further until a minimum is behind.
  LinePoint run(double first) {
    LinePoint before = start_, now = evaluate_(first);
    for (; tries_ < max_tries_; ++tries_) {
      const bool rises = is_high(now) || (tries_ > 1 && now.value >= before.value);
      if (!rises && is_flat(now)) return now;
      if (rises || now.slope >= 0) return close_in({before, now});
      const double next = interpolate(before, now, now.at + 0.01 * (now.at - before.at), now.at * 10);
      before = std::move(now);
      now = evaluate_(next);
    }
    return start_.value <= now.value ? start_ : now;
  }

 private:
  using Bracket = std::array<LinePoint, 2>;

  bool is_high(const LinePoint& point) const {
    return point.value > start_.value + kDecrease * point.at * start_.slope;
  }
  bool is_flat(const LinePoint& point) const { return std::fabs(point.slope) <= -kFlatness * start_.slope; }

  // Interpolated; twice in a row close to an end it is moved away from there.
  double next_in(const Bracket& bracket) {
    const auto [lowest, highest] = std::minmax(bracket[0].at, bracket[1].at);
    const double at = interpolate(bracket[0], bracket[1], lowest, highest);
    const double margin = 0.1 * (highest - lowest);
    const bool is_close = std::min(highest - at, at - lowest) < margin;
    const bool moves = is_close && (was_close_ || at >= highest || at <= lowest);
    was_close_ = is_close && !moves;
    if (!moves) return at;
    return std::fabs(at - highest) < std::fabs(at - lowest) ? highest - margin : lowest + margin;
  }

  LinePoint close_in(Bracket bracket) {
    const auto lower = [&] { return bracket[0].value <= bracket[1].value ? size_t{0} : size_t{1}; };
    size_t low = lower();
    while (tries_ < max_tries_ && std::fabs(bracket[1].at - bracket[0].at) >= shortest_) {
      LinePoint now = evaluate_(next_in(bracket));
      ++tries_;
      LinePoint& high_end = bracket[1 - low];
      LinePoint& low_end = bracket[low];
      if (is_high(now) || now.value >= low_end.value) {
        high_end = std::move(now);
        low = lower();
        continue;
      }
      const bool is_done = is_flat(now);
      if (!is_done && now.slope * (high_end.at - low_end.at) >= 0) high_end = low_end;
      low_end = std::move(now);
      if (is_done) break;
    }
    return bracket[low];
  }

  FunctionRef<LinePoint(double)> evaluate_;
  const LinePoint& start_;
  const double shortest_;
  const int64_t max_tries_;
  int64_t tries_ = 0;
  bool was_close_ = false;
};

}  // namespace

LinePoint strong_wolfe(FunctionRef<LinePoint(double)> evaluate, const LinePoint& start, double first, double shortest,
                       int64_t max_tries) {
  return Search(evaluate, start, shortest, max_tries).run(first);
}

}  // namespace autograph
