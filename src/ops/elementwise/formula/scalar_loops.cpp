#include "ops/elementwise/formula/scalar_loops.h"

#include <algorithm>

#include "base/join.h"

namespace autograph {
namespace {

Dim broadcast_dims(const InferContext& context, const Dim& a, const Dim& b, std::span<const Shape> shapes) {
  if (a == b) return a;
  if (a.is_known() && a.value() == 1) return b;
  if (b.is_known() && b.value() == 1) return a;
  if (a.is_known() && b.is_known()) {
    std::string all;
    for (const Shape& shape : shapes) all += (all.empty() ? "" : " and ") + to_string(shape);
    context.fail<ShapeError>("shapes", fmt::format("{} do not broadcast", all));
  }
  // An unknown extent against a number other than 1 must be that number (or 1).
  if (a.is_known()) return a;
  if (b.is_known()) return b;
  return Dim::unknown();
}

Shape broadcast_inputs(const InferContext& context) {
  std::vector<Shape> shapes;
  for (size_t slot = 0; slot < context.num_inputs(); ++slot) {
    if (context.has_input(slot)) shapes.push_back(context.shape(slot));
  }
  return broadcast_shapes(context, shapes);
}

}  // namespace

Shape broadcast_shapes(const InferContext& context, std::span<const Shape> shapes) {
  int64_t rank = 0;
  for (const Shape& shape : shapes) {
    if (!shape.has_rank()) return Shape::unknown();
    rank = std::max(rank, shape.rank());
  }
  std::vector<Dim> dims(static_cast<size_t>(rank), Dim(1));
  for (const Shape& shape : shapes) {
    const int64_t shift = rank - shape.rank();
    for (int64_t axis = 0; axis < shape.rank(); ++axis) {
      Dim& dim = dims[static_cast<size_t>(axis + shift)];
      dim = broadcast_dims(context, dim, shape[axis], shapes);
    }
  }
  return Shape(std::move(dims));
}

void infer_elementwise(InferContext& context) { context.set_output(0, context.dtype(0), broadcast_inputs(context)); }

void infer_predicate(InferContext& context) { context.set_output(0, DType::boolean, broadcast_inputs(context)); }

}  // namespace autograph
