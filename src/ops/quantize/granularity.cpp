#include "ops/quantize/granularity.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace autograph {
namespace {

bool differ(const Dim& a, const Dim& b) { return a.is_known() && b.is_known() && a.value() != b.value(); }

bool is_single(const Shape& scale) {
  return scale.rank() == 0 || (scale.rank() == 1 && scale[0].is_known() && scale[0].value() == 1);
}

void check_blocks(const InferContext& context, const Shape& x, const Shape& scale, int64_t axis, int64_t block) {
  Shape expected = x;
  if (x[axis].is_known()) expected[axis] = x[axis].value() / block + (x[axis].value() % block != 0 ? 1 : 0);
  bool fits = scale.rank() == x.rank();
  for (int64_t a = 0; fits && a < x.rank(); ++a) {
    fits = !differ(scale[a], a == axis && !x[axis].is_known() ? Dim::unknown() : expected[a]);
  }
  context.require<ShapeError>(fits, "scale",
                              fmt::format("expected {} for block_size {} on axis {} of {}, got {}", to_string(expected),
                                          block, axis, to_string(x), to_string(scale)));
}

}  // namespace

void check_granularity(const InferContext& context) {
  const Shape& x = context.shape(0);
  const Shape& scale = context.shape(1);
  const int64_t block = context.attributes().integer("block_size");
  context.require<ValueError>(block >= 0, "block_size", fmt::format("expected 0 or more, got {}", block));
  if (context.has_input(2) && scale.is_static() && context.shape(2).is_static()) {
    const Shape& zero = context.shape(2);
    const bool both_single =
        scale.num_elements() == 1 && zero.num_elements() == 1;  // [] and [1] are told apart nowhere
    context.require<ShapeError>(
        both_single || zero == scale, "zero point",
        fmt::format("expected the shape of the scale {}, got {}", to_string(scale), to_string(zero)));
  }
  if (!x.has_rank() || !scale.has_rank()) return;
  const bool blocked = block > 0 && scale.rank() > 0 && scale.rank() == x.rank();
  if (!blocked && is_single(scale)) return;
  // Along the only axis of a vector there is no choice.
  const int64_t axis = x.rank() == 1 ? 0 : context.normalized_axis(context.attributes().integer("axis"), x.rank());
  if (blocked) return check_blocks(context, x, scale, axis, block);
  context.require<ShapeError>(
      x.rank() >= 1 && scale.rank() == 1 && !differ(scale[0], x[axis]), "scale",
      fmt::format("expected a scalar or [{}] for axis {} of {}, got {}", x.rank() >= 1 ? to_string(x[axis]) : "", axis,
                  to_string(x), to_string(scale)));
}

Granularity::Granularity(const Attributes& attributes, const TensorView& x, const TensorView& scale) {
  const int64_t block = attributes.integer("block_size");
  blocked_ = block > 0 && scale.rank() > 0 && scale.rank() == x.rank();
  if (!blocked_ && scale.num_elements() <= 1) return;
  int64_t axis = x.rank() == 1 ? 0 : attributes.integer("axis");
  if (axis < 0) axis += x.rank();
  extent_ = x.dim(axis);
  blocks_ = blocked_ ? scale.dim(axis) : extent_;
  block_ = blocked_ ? block : 1;
  for (int64_t a = axis + 1; a < x.rank(); ++a) inner_ *= x.dim(a);
}

int64_t Granularity::operator()(int64_t i) const {
  const int64_t along = i / inner_ % extent_ / block_;
  if (!blocked_) return along;
  return (i / inner_ / extent_ * blocks_ + along) * inner_ + i % inner_;
}

int64_t quantize_value(double value, int64_t zero_point, int64_t low, int64_t high) {
  const double shifted = std::nearbyint(value) + static_cast<double>(zero_point);
  if (std::isnan(shifted) || shifted <= static_cast<double>(low)) return low;
  return shifted >= static_cast<double>(high) ? high : static_cast<int64_t>(shifted);
}

}  // namespace autograph
