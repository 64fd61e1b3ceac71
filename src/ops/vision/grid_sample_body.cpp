#include "ops/vision/grid_sample_body.h"

#include "autograph/error.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/shape.h"

namespace autograph {
namespace {

// Elements along one axis that every position mixes, one entry for each of its neighbours.
struct Tap {
  Var index;   // f64, a whole number within the axis
  Var weight;  // f64, 0 for what lies outside of an image padded with zeros
};

// What the attributes say about one axis.
class Axis {
 public:
  Axis(const Attributes& attributes, int64_t extent)
      : padding_(attributes.text("padding_mode")),
        mode_(attributes.text("mode")),
        last_(static_cast<double>(extent - 1)),
        size_(static_cast<double>(extent)),
        aligned_(attributes.flag("align_corners")) {}

  std::vector<Tap> taps(const Var& normalized) const {
    Var c = aligned_ ? (normalized + 1) * (last_ / 2) : ((normalized + 1) * size_ - 1) / 2;
    if (mode_ == "nearest") c = round(c);
    if (padding_ == "border") c = where(is_outside(c), inside(c), c);
    if (padding_ == "reflection") c = reflected(c);
    if (mode_ == "nearest") return {tap(c, c * 0 + 1)};
    const Var left = floor(c), f = c - left;
    if (mode_ == "linear") return {tap(left, 1 - f), tap(left + 1, f)};
    return {tap(left - 1, outer(f + 1)), tap(left, inner(f)), tap(left + 1, inner(1 - f)), tap(left + 2, outer(2 - f))};
  }

 private:
  double low() const { return aligned_ ? 0.0 : -0.5; }
  double high() const { return aligned_ ? last_ : last_ + 0.5; }
  static Var number(const Var& like, double value) { return scalar_like(like, value); }
  static Var below(const Var& c, double bound) { return less(c, number(c, bound)); }
  static Var above(const Var& c, double bound) { return greater(c, number(c, bound)); }
  Var is_outside(const Var& c) const { return logical_or(below(c, low()), above(c, high())); }
  Var inside(const Var& c) const { return clip(c, number(c, 0), number(c, last_)); }

  // There and back between the borders.
  Var reflected(const Var& c) const {
    const double range = high() - low();
    if (range <= 0) return where(is_outside(c), c * 0, c);
    const Var is_low = below(c, low());
    const Var beyond = where(is_low, low() - c, c - high());
    const Var turns = floor(beyond / range), rest = beyond - turns * range;
    const Var is_even = equal(turns, floor(turns / 2) * 2);
    const Var back = where(equal(is_low, is_even), low() + rest, high() - rest);
    return where(is_outside(c), back, c);
  }

  Tap tap(const Var& c, const Var& weight) const {
    if (padding_ != "zeros") return {floor(inside(padding_ == "reflection" ? reflected(c) : c)), weight};
    const Var is_inside = logical_and(greater_or_equal(c, number(c, 0)), less_or_equal(c, number(c, last_)));
    return {where(is_inside, c, number(c, 0)), where(is_inside, weight, number(c, 0))};
  }

  // The cubic of distances up to 1, and of those from 1 to 2.
  static constexpr double kA = -0.75;
  static Var inner(const Var& t) { return ((kA + 2) * t - (kA + 3)) * t * t + 1; }
  static Var outer(const Var& t) { return ((t - 5) * t + 8) * t * kA - 4 * kA; }

  std::string padding_;
  std::string mode_;
  double last_;
  double size_;
  bool aligned_;
};

void require_extents(const Shape& shape, int64_t first, int64_t end, const char* name) {
  for (int64_t axis = first; axis < end; ++axis) {
    if (!shape[axis].is_known()) {
      throw UnsupportedError(std::string("[grid_sample] ") + name + ": expected known extents behind the batch, got " +
                             to_string(shape));
    }
  }
}

}  // namespace

std::vector<Var> grid_sample_body(DecomposeContext& context) {
  const Var x = context.inputs[0], grid = context.inputs[1];
  const int64_t rank = x.rank(), axes = rank - 2;
  require_extents(x.shape(), 1, rank, "x");
  require_extents(grid.shape(), 1, rank, "grid");
  const Var points = cast(reshape(grid, {0, -1, axes}), DType::f64);

  // [N, positions] of each combination of neighbours.
  std::vector<Tap> taps;
  for (int64_t axis = 0; axis < axes; ++axis) {
    const int64_t extent = x.dim(axis + 2), column = axes - 1 - axis;
    const Var normalized = squeeze(slice(points, {column}, {column + 1}, {2}), {2});
    const std::vector<Tap> along = Axis(context.attributes, extent).taps(normalized);
    if (axis == 0) {
      taps = along;
      continue;
    }
    std::vector<Tap> product;
    for (const Tap& a : taps) {
      for (const Tap& b : along) {
        product.push_back({a.index * static_cast<double>(extent) + b.index, a.weight * b.weight});
      }
    }
    taps = std::move(product);
  }

  const bool is_float = dtypes::kFloat.contains(x.dtype());
  const DType dtype = is_float ? x.dtype() : DType::f64;
  const Var pixels = reshape(is_float ? x : cast(x, dtype), {0, 0, -1});
  Var y;
  for (const Tap& tap : taps) {
    const Var index = expand(unsqueeze(cast(tap.index, DType::i64), {1}), {1, x.dim(1), 1});
    const Var part = gather_elements(pixels, index, 2) * unsqueeze(cast(tap.weight, dtype), {1});
    y = y.is_valid() ? y + part : part;
  }
  std::vector<int64_t> dims{0, x.dim(1)};
  for (int64_t axis = 1; axis + 1 < rank; ++axis) dims.push_back(grid.dim(axis));
  return {cast(reshape(y, dims), x.dtype())};
}

}  // namespace autograph
