#include "ops/gradients.h"

#include <numeric>

#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

Tensor one_element(DType dtype, double value) {
  Tensor tensor;
  dispatch<NumericTypes>(dtype, [&]<class T>(TypeTag<T>) { tensor = Tensor::of<T>({1}, {static_cast<T>(value)}); });
  return tensor;
}

Var integers(const Var& like, const std::vector<int64_t>& values) {
  return constant_like(like, Tensor::vector(values));
}

DType wide_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

Var in_dtype(const Var& x, DType dtype) { return x.dtype() == dtype ? x : cast(x, dtype); }

// The axes of `gradient` to sum over, when that can be told before running.
std::optional<std::vector<int64_t>> broadcast_axes(const Shape& gradient, const Shape& like) {
  std::vector<int64_t> axes;
  const int64_t extra = gradient.rank() - like.rank();
  for (int64_t axis = 0; axis < gradient.rank(); ++axis) {
    if (axis < extra) {
      axes.push_back(axis);
      continue;
    }
    const Dim& extent = like[axis - extra];
    if (gradient[axis].same_as(extent) || (gradient[axis].is_known() && gradient[axis].value() == 1)) continue;
    if (extent.is_known() && extent.value() != 1) continue;
    if (!extent.is_known()) return std::nullopt;
    axes.push_back(axis);
  }
  return axes;
}

// So many ones as `gradient` has more axes than `like`.
Var leading_ones(const Var& gradient, const Var& like) {
  if (gradient.shape().has_rank() && like.shape().has_rank()) {
    return integers(like, Dims(static_cast<size_t>(gradient.rank() - like.rank()), 1));
  }
  const Var count = size(shape(gradient)) - size(shape(like));
  return constant_of_shape(reshape(count, std::vector<int64_t>{1}), one_element(DType::i64, 1));
}

// Which of the axes have extent 1 in `like`, or how many there are, is known only while running.
Var sum_where_one(const Var& gradient, const Var& like) {
  const Var extents = concat({leading_ones(gradient, like), extents_of(like)}, 0);
  const Var is_one = cast(equal(extents, integers(like, {1})), DType::i64);
  const Var axes = reshape(non_zero(is_one), {-1});
  const Var summed = apply(reduce_sum_def(), {gradient, axes}, {{"noop_with_empty_axes", int64_t{1}}});
  return reshape(summed, extents_of(like), true);
}

}  // namespace

Var extents_of(const Var& x) { return x.type().is_static() ? integers(x, x.shape().static_dims()) : shape(x); }

Var extent_of(const Var& x, int64_t axis) {
  const auto number = [&](int64_t value) { return constant_like(x, Tensor::scalar(value)); };
  const Dim& extent = x.shape()[axis];
  return extent.is_known() ? number(extent.value()) : gather(shape(x), number(axis));
}

Var filled_like(const Var& x, double value) { return constant_of_shape(extents_of(x), one_element(x.dtype(), value)); }

Var reshape_as(const Var& gradient, const Var& like) {
  if (gradient.type().is_static() && gradient.shape() == like.shape()) return gradient;
  return reshape(gradient, extents_of(like), true);
}

Var expand_as(const Var& gradient, const Var& like) {
  if (gradient.type().is_static() && gradient.shape() == like.shape()) return gradient;
  return apply(expand_def(), {gradient, extents_of(like)});
}

Var sum_to(const Var& gradient, const Var& like) {
  if (gradient.type().is_static() && gradient.shape() == like.shape()) return gradient;
  if (!gradient.shape().has_rank() || !like.shape().has_rank()) return sum_where_one(gradient, like);
  const auto axes = broadcast_axes(gradient.shape(), like.shape());
  if (!axes) return sum_where_one(gradient, like);
  if (axes->empty()) return gradient;
  const Var summed = reduce_sum(gradient, *axes, gradient.rank() == like.rank());
  return gradient.rank() == like.rank() ? summed : reshape_as(summed, like);
}

Var as_wide(const Var& x) { return in_dtype(x, wide_dtype(x.dtype())); }

Var divided_by_count(const Var& gradient, const Var& count) {
  return in_dtype(as_wide(gradient) / count, gradient.dtype());
}

Var share_of_mean(const Var& gradient, const Var& x, const Var& y) {
  const auto elements = x.shape().num_elements(), means = y.shape().num_elements();
  if (!elements || !means) {
    const DType wide = wide_dtype(gradient.dtype());
    return divided_by_count(gradient, cast(size(x), wide) / cast(size(y), wide));
  }
  const double count = *means == 0 ? 1.0 : static_cast<double>(*elements) / static_cast<double>(*means);
  constexpr double kLargestHalf = 65504;
  if (count <= kLargestHalf) return gradient / count;
  return in_dtype(as_wide(gradient) / count, gradient.dtype());
}

Var swap_last_two(const Var& x) {
  std::vector<int64_t> perm(static_cast<size_t>(x.rank()));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 2], perm[perm.size() - 1]);
  return transpose(x, perm);
}

Var times_slope(const Var& gradient, const Var& slope) { return mul_no_nan(gradient, slope); }

Var linear_positions(const Var& x) {
  const auto scalar = [&](int64_t value) { return constant_like(x, Tensor::scalar<int64_t>(value)); };
  const auto count = x.shape().num_elements();
  const Var list = range(scalar(0), count ? scalar(*count) : size(x), scalar(1));
  return reshape(list, extents_of(x), true);
}

Var add_at(const Var& like, const Var& positions, const Var& gradient) {
  const auto count = like.shape().num_elements();
  const Var length = count ? integers(like, {*count}) : reshape(size(like), {1});
  const Var zeros = constant_of_shape(length, one_element(like.dtype(), 0));
  const Var sums = scatter_elements(zeros, reshape(positions, {-1}), reshape(gradient, {-1}), 0, "add");
  return reshape_as(sums, like);
}

void moved_elements_vjp(VjpContext& context) {
  std::vector<Var> inputs{linear_positions(context.in(0))};
  for (size_t slot = 1; slot < context.num_inputs(); ++slot) inputs.push_back(context.in(slot));
  const std::vector<Var> positions =
      apply_all(context.op(), inputs, context.attributes(), static_cast<int>(context.num_outputs()));
  Var total;
  for (size_t k = 0; k < positions.size(); ++k) {
    if (!context.has_gy(k)) continue;
    const Var part = add_at(context.in(0), positions[k], context.gy(k));
    total = total.is_valid() ? total + part : part;
  }
  context.set(0, total);
}

}  // namespace autograph
