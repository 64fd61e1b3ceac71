#include "ops/vision/grid_sample_body.h"

#include "autograph/error.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/gradients.h"

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
  Axis(const Attributes& attributes, const Var& extent)
      : padding_(attributes.text("padding_mode")),
        mode_(attributes.text("mode")),
        last_(extent - 1),
        size_(extent),
        aligned_(attributes.flag("align_corners")) {}

  std::vector<Tap> taps(const Var& normalized) const {
    Var c = aligned_ ? (normalized + 1) * (last_ / 2) : ((normalized + 1) * size_ - 1) / 2;
    if (mode_ == "nearest") c = round(c);
    if (padding_ == "border") c = where(is_outside(c), inside(c), c);
    if (padding_ == "reflection") c = reflected(c);
    if (padding_ != "zeros") c = where(is_nan(c), number(c, 0), c);
    if (mode_ == "nearest") return {tap(c, c * 0 + 1)};
    const Var left = floor(c), f = c - left;
    if (mode_ == "linear") return {tap(left, 1 - f), tap(left + 1, f)};
    return {tap(left - 1, outer(f + 1)), tap(left, inner(f)), tap(left + 1, inner(1 - f)), tap(left + 2, outer(2 - f))};
  }

 private:
  double low() const { return aligned_ ? 0.0 : -0.5; }
  Var high() const { return aligned_ ? last_ : last_ + 0.5; }
  static Var number(const Var& like, double value) { return scalar_like(like, value); }
  Var is_low(const Var& c) const { return less(c, number(c, low())); }
  Var is_outside(const Var& c) const { return logical_or(is_low(c), greater(c, high())); }
  Var inside(const Var& c) const { return clip(c, number(c, 0), last_); }

  // There and back between the borders; to 0 where they are one.
  Var reflected(const Var& c) const {
    const Var range = high() - low(), one = number(range, 1);
    const Var is_empty = less_or_equal(range, number(range, 0)), step = where(is_empty, one, range);
    const Var beyond = where(is_low(c), low() - c, c - high());
    const Var turns = floor(beyond / step), rest = beyond - turns * step;
    const Var is_even = equal(turns, floor(turns / 2) * 2);
    const Var back = where(equal(is_low(c), is_even), low() + rest, high() - rest);
    return where(is_outside(c), where(is_empty, c * 0, back), c);
  }

  Tap tap(const Var& c, const Var& weight) const {
    if (padding_ != "zeros") return {floor(inside(padding_ == "reflection" ? reflected(c) : c)), weight};
    const Var is_inside = logical_and(greater_or_equal(c, number(c, 0)), less_or_equal(c, last_));
    return {where(is_inside, c, number(c, 0)), where(is_inside, weight, number(c, 0))};
  }

  // The cubic of distances up to 1, and of those from 1 to 2.
  static constexpr double kA = -0.75;
  static Var inner(const Var& t) { return ((kA + 2) * t - (kA + 3)) * t * t + 1; }
  static Var outer(const Var& t) { return ((t - 5) * t + 8) * t * kA - 4 * kA; }

  std::string padding_;
  std::string mode_;
  Var last_, size_;  // f64 []
  bool aligned_;
};

void require_ranks(const Var& x, const Var& grid) {
  if (x.shape().has_rank() && grid.shape().has_rank()) return;
  throw UnsupportedError("[grid_sample] ranks: expected known ones, got x " + to_string(x.shape()) + " and grid " +
                         to_string(grid.shape()));
}

// As a list of one.
Var as_list(const Var& extent) { return unsqueeze(extent, {0}); }

}  // namespace

std::vector<Var> grid_sample_body(DecomposeContext& context) {
  const Var x = context.inputs[0], grid = context.inputs[1];
  require_ranks(x, grid);
  const int64_t rank = x.rank(), axes = rank - 2;
  const Var points = cast(reshape(grid, {0, -1, axes}), DType::f64);

  // [N, positions] of each combination of neighbours.
  std::vector<Tap> taps;
  for (int64_t axis = 0; axis < axes; ++axis) {
    const int64_t column = axes - 1 - axis;
    const Var extent = cast(extent_of(x, axis + 2), DType::f64);
    const Var normalized = squeeze(slice(points, {column}, {column + 1}, {2}), {2});
    const std::vector<Tap> along = Axis(context.attributes, extent).taps(normalized);
    if (axis == 0) {
      taps = along;
      continue;
    }
    std::vector<Tap> product;
    for (const Tap& a : taps) {
      for (const Tap& b : along) {
        product.push_back({a.index * extent + b.index, a.weight * b.weight});
      }
    }
    taps = std::move(product);
  }

  const bool is_float = dtypes::kFloat.contains(x.dtype());
  const DType dtype = is_float ? x.dtype() : DType::f64;
  const Var pixels = reshape(is_float ? x : cast(x, dtype), {0, 0, -1});
  const Var one = constant_like(x, Tensor::vector(Dims{1})), channels = as_list(extent_of(x, 1));
  const Var over_channels = concat({one, channels, one}, 0);
  Var y;
  for (const Tap& tap : taps) {
    const Var index = apply(expand_def(), {unsqueeze(cast(tap.index, DType::i64), {1}), over_channels});
    const Var part = gather_elements(pixels, index, 2) * unsqueeze(cast(tap.weight, dtype), {1});
    y = y.is_valid() ? y + part : part;
  }
  std::vector<Var> dims{as_list(extent_of(grid, 0)), channels};
  for (int64_t axis = 1; axis + 1 < rank; ++axis) dims.push_back(as_list(extent_of(grid, axis)));
  return {cast(reshape(y, concat(dims, 0), true), x.dtype())};
}

}  // namespace autograph
