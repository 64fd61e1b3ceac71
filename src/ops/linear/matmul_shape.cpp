#include "ops/linear/matmul_shape.h"

#include <algorithm>

#include "graph/moved_bytes.h"
#include "ops/broadcast_offsets.h"
#include "ops/elementwise/formula/scalar_loops.h"
#include "ops/extents.h"

namespace autograph {
namespace {

// Dims before the last two; empty for vectors and matrices.
template <class List>
List batch_dims(const List& dims) {
  return dims.size() <= 2 ? List() : List(dims.begin(), dims.end() - 2);
}

Dims broadcast_batch(const Dims& a, const Dims& b) {
  Dims result(std::max(a.size(), b.size()), 1);
  for (const Dims* dims : {&a, &b}) {
    for (size_t back = 1; back <= dims->size(); ++back) {
      int64_t& extent = result[result.size() - back];
      const int64_t other = (*dims)[dims->size() - back];
      if (other != 1) extent = other;
    }
  }
  return result;
}

}  // namespace

Shape infer_matmul_shape(const InferContext& context, const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank()) return Shape::unknown();
  if (a.rank() == 0 || b.rank() == 0) {
    context.fail<ShapeError>("rank", fmt::format("expected 1 or more, got {} and {}", to_string(a), to_string(b)));
  }
  const Dim& inner_a = a[a.rank() - 1];
  const Dim& inner_b = b[std::max<int64_t>(b.rank() - 2, 0)];
  if (inner_a.is_known() && inner_b.is_known() && inner_a.value() != inner_b.value()) {
    context.fail<ShapeError>("inner extent", fmt::format("{} of {} and {} of {} differ", inner_a.value(), to_string(a),
                                                         inner_b.value(), to_string(b)));
  }
  const std::vector<Shape> batches{Shape(batch_dims(a.dims())), Shape(batch_dims(b.dims()))};
  Shape result = broadcast_shapes(context, batches);
  if (a.rank() > 1) result.dims().push_back(a[a.rank() - 2]);
  if (b.rank() > 1) result.dims().push_back(b[b.rank() - 1]);
  return result;
}

MatmulWalk walk_matmul(const TensorView& a, const TensorView& b) {
  const Dims a_dims(a.dims().begin(), a.dims().end());
  const Dims b_dims(b.dims().begin(), b.dims().end());
  MatmulWalk walk;
  walk.size.rows = a_dims.size() > 1 ? a_dims[a_dims.size() - 2] : 1;
  walk.size.inner = a_dims.back();
  walk.size.columns = b_dims.size() > 1 ? b_dims.back() : 1;
  const Dims a_batch = batch_dims(a_dims);
  const Dims b_batch = batch_dims(b_dims);
  const Dims batch = broadcast_batch(a_batch, b_batch);
  walk.a_matrix = broadcast_offsets(a_batch, batch);
  walk.b_matrix = broadcast_offsets(b_batch, batch);
  return walk;
}

OpCost matmul_cost(const CostContext& context, size_t a, size_t b) {
  OpCost cost{.bytes = moved_bytes(context)};
  const Shape& left = context.inputs[a].shape();
  const Shape& right = context.inputs[b].shape();
  if (left.rank() == 0 || right.rank() == 0) return cost;
  cost.flops = 2.0 * static_cast<double>(context.outputs[0].shape().num_elements().value_or(0)) *
               static_cast<double>(left[left.rank() - 1].value());
  return cost;
}

}  // namespace autograph
