#include "ops/reduction/axes.h"

#include <utility>

#include "base/check.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

// Flags, one per axis. An empty list means all axes, or none with noop_with_empty_axes.
std::vector<bool> reduced_flags(const std::vector<int64_t>& axes, int64_t rank, bool noop) {
  std::vector<bool> reduced(static_cast<size_t>(rank), axes.empty() && !noop);
  for (const int64_t axis : axes) reduced[static_cast<size_t>(front_axis(axis, rank))] = true;
  return reduced;
}

Shape reduced_shape(const Shape& x, const std::vector<bool>& reduced, bool keepdims) {
  std::vector<Dim> dims;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    if (!reduced[static_cast<size_t>(axis)]) {
      dims.push_back(x[axis]);
    } else if (keepdims) {
      dims.emplace_back(1);
    }
  }
  return Shape(std::move(dims));
}

// The axes are there but not known yet: with keepdims the rank stays, without it their number is taken off.
Shape shape_of_unknown_axes(const InferContext& context) {
  const Shape& x = context.shape(0);
  if (context.attributes().flag("keepdims")) return Shape::of_rank(x.rank());
  const Shape& axes = context.shape(1);
  if (!axes.has_rank() || axes.rank() != 1 || !axes[0].is_known() || axes[0].value() == 0) return Shape::unknown();
  if (axes[0].value() > x.rank()) return Shape::unknown();
  return Shape::of_rank(x.rank() - axes[0].value());
}

// Some of the axes of a tensor, innermost first while they are collected.
struct Block {
  Dims extents;
  Dims strides;

  void add_outer(int64_t extent, int64_t stride) {
    extents.push_back(extent);
    strides.push_back(stride);
  }

  // Offsets of all elements, in row-major order.
  std::vector<int64_t> offsets() const {
    std::vector<int64_t> all{0};
    for (size_t axis = extents.size(); axis-- > 0;) {
      std::vector<int64_t> next;
      next.reserve(all.size() * static_cast<size_t>(extents[axis]));
      for (const int64_t offset : all) {
        for (int64_t i = 0; i < extents[axis]; ++i) next.push_back(offset + i * strides[axis]);
      }
      all = std::move(next);
    }
    return all;
  }
};

}  // namespace

void infer_reduction(InferContext& context) {
  const Shape& x = context.shape(0);
  std::optional<std::vector<int64_t>> axes = std::vector<int64_t>{};
  if (context.has_input(1)) axes = context.known_integers(1);
  if (!x.has_rank()) return context.set_output(0, context.dtype(0), Shape::unknown());
  if (!axes) return context.set_output(0, context.dtype(0), shape_of_unknown_axes(context));
  for (int64_t& axis : *axes) axis = context.normalized_axis(axis, x.rank(), "axes");
  const auto reduced = reduced_flags(*axes, x.rank(), context.attributes().flag("noop_with_empty_axes"));
  context.set_output(0, context.dtype(0), reduced_shape(x, reduced, context.attributes().flag("keepdims")));
}

ReductionWalk walk_of(const OpCall& call) {
  const TensorView x = call.input(0);
  std::vector<int64_t> axes;
  if (call.input(1).is_present()) {
    const auto given = call.input(1).elements<int64_t>();
    axes.assign(given.begin(), given.end());
  }
  for (const int64_t axis : axes) {
    AG_CHECK_USER(axis >= -x.rank() && axis < x.rank(), ValueError,
                  "[reduce] axes: expected {}..{} for rank {}, got {}", -x.rank(), x.rank() - 1, x.rank(), axis);
  }
  const auto reduced = reduced_flags(axes, x.rank(), call.attributes.flag("noop_with_empty_axes"));
  Block kept;
  Block combined;
  int64_t stride = 1;
  for (int64_t axis = x.rank() - 1; axis >= 0; --axis) {
    (reduced[static_cast<size_t>(axis)] ? combined : kept).add_outer(x.dim(axis), stride);
    stride *= x.dim(axis);
  }
  return {kept.offsets(), combined.offsets()};
}

}  // namespace autograph
