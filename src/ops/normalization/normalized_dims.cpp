#include "ops/normalization/normalized_dims.h"

#include <algorithm>

#include "ops/broadcast_offsets.h"
#include "ops/elementwise/formula/scalar_loops.h"
#include "ops/real_values.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

int64_t first_axis(const Attributes& attributes, int64_t rank) { return front_axis(attributes.integer("axis"), rank); }

}  // namespace

NormalizedRows normalized_rows(const Attributes& attributes, const TensorView& x) {
  const int64_t axis = first_axis(attributes, x.rank());
  NormalizedRows rows;
  for (int64_t a = 0; a < x.rank(); ++a) (a < axis ? rows.num_rows : rows.row_size) *= x.dim(a);
  return rows;
}

void check_normalized_inputs(const InferContext& context) {
  const Shape& x = context.shape(0);
  if (!x.has_rank()) return;
  context.normalized_axis(context.attributes().integer("axis"), x.rank());
  for (size_t slot = 1; slot < context.num_inputs(); ++slot) {
    if (!context.has_input(slot) || !context.shape(slot).has_rank()) continue;
    const Shape& parameter = context.shape(slot);
    const std::vector<Shape> both{x, parameter};
    const Shape joined = broadcast_shapes(context, both);
    bool fits = joined.rank() == x.rank();
    for (int64_t a = 0; fits && a < x.rank(); ++a) {
      fits = !x[a].is_known() || !joined[a].is_known() || x[a].value() == joined[a].value();
    }
    context.require<ShapeError>(fits, "parameter shape",
                                fmt::format("{} does not broadcast to {}", to_string(parameter), to_string(x)));
  }
}

Shape statistics_shape(const InferContext& context) {
  Shape shape = context.shape(0);
  if (!shape.has_rank()) return shape;
  for (int64_t a = first_axis(context.attributes(), shape.rank()); a < shape.rank(); ++a) shape[a] = Dim(1);
  return shape;
}

BroadcastParameter::BroadcastParameter(const TensorView& parameter, const TensorView& x, double missing) {
  if (!parameter.is_present()) {
    values_ = {missing};
    return;
  }
  values_ = real_values(parameter);
  const std::span<const int64_t> tail = x.dims().subspan(static_cast<size_t>(x.rank() - parameter.rank()));
  offsets_ = broadcast_offsets(parameter.dims(), tail);
}

Var normalized_axes(DecomposeContext& context) {
  const int64_t rank = context.inputs[0].rank();
  std::vector<int64_t> axes;
  for (int64_t a = first_axis(context.attributes, rank); a < rank; ++a) axes.push_back(a);
  return constant(context.graph, Tensor::vector(axes));
}

}  // namespace autograph
