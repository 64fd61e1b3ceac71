// affine_grid: where each element of an image of the given size lands under theta: grid[n, pos..., :] = theta[n] (x,
// y[, z], 1), the coordinates of pos in [-1, 1] listed from the innermost axis. With align_corners -1 and 1 are the
// centres of the corner elements (a single element sits at 0), without it their outer edges.
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/vision.h"
#include "base/checked_int.h"
#include "base/join.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  context.require_rank(0, 3);
  const Shape& theta = context.shape(0);
  const auto size = context.known_integers(1);
  int64_t rank = theta.has_rank() ? theta[1].value_or(0) : 0;
  if (size) {
    const bool fits = (size->size() == 4 || size->size() == 5) &&
                      std::all_of(size->begin(), size->end(), [](int64_t s) { return s >= 0; });
    context.require<ValueError>(fits, "size", "expected [N, C, H, W] or [N, C, D, H, W], got " + bracketed(*size));
    rank = static_cast<int64_t>(size->size()) - 2;
  }
  if (rank == 0) return context.set_output(0, context.dtype(0), Shape::unknown());
  if (theta.has_rank()) {
    const bool fits = (rank == 2 || rank == 3) && theta[1].value_or(rank) == rank &&
                      theta[2].value_or(rank + 1) == rank + 1 && (!size || theta[0].value_or((*size)[0]) == (*size)[0]);
    context.require<ShapeError>(fits, "theta",
                                "expected [N, 2, 3] or [N, 3, 4], as many as size says, got " + to_string(theta));
  }
  Shape y = Shape::of_rank(rank + 2);
  if (theta.has_rank()) y[0] = theta[0];
  for (int64_t axis = 0; size && axis < rank; ++axis) y[axis + 1] = (*size)[static_cast<size_t>(axis + 2)];
  if (size) y[0] = (*size)[0];
  y[rank + 1] = rank;
  context.set_output(0, context.dtype(0), y);
}

double coordinate(int64_t i, int64_t extent, bool align_corners) {
  if (!align_corners) return static_cast<double>(2 * i + 1) / static_cast<double>(extent) - 1;
  return extent == 1 ? 0 : 2 * static_cast<double>(i) / static_cast<double>(extent - 1) - 1;
}

void reference(const OpCall& call) {
  const TensorView grid = call.output(0);
  const int64_t rank = grid.rank() - 2;
  const bool align = call.attributes.flag("align_corners");
  const int64_t positions = checked_product(grid.dims().subspan(1, static_cast<size_t>(rank)), "affine_grid");
  dispatch<FloatTypes>(grid.dtype(), [&]<class T>(TypeTag<T>) {
    T* out = grid.mutable_data<T>();
    for (int64_t i = 0; i < grid.dim(0) * positions; ++i) {
      const T* theta = call.input(0).data<T>() + i / positions * rank * (rank + 1);
      double point[4] = {1, 1, 1, 1};  // x, y[, z], 1
      int64_t rest = i % positions;
      for (int64_t axis = 0; axis < rank; ++axis) {
        const int64_t extent = grid.dim(rank - axis);
        point[axis] = coordinate(rest % extent, extent, align);
        rest /= extent;
      }
      point[rank] = 1;
      for (int64_t row = 0; row < rank; ++row) {
        double sum = 0;
        for (int64_t k = 0; k <= rank; ++k) sum += static_cast<double>(theta[row * (rank + 1) + k]) * point[k];
        *out++ = T(sum);
      }
    }
  });
}

OpSample sample(Random& random) {
  Dims size = draw_dims(random, 4, 5, 3);
  const auto rank = static_cast<int64_t>(size.size()) - 2;
  return {.inputs = {draw_tensor(random, DType::f32, {size[0], rank, rank + 1}), Tensor::vector(size)},
          .attributes = {{"align_corners", draw(random, 0, 1)}}};
}

// The sum over all positions of the gradient times the position, which the map that changes nothing gives.
void vjp(VjpContext& c) {
  const Var theta = c.in(0);
  const int64_t rank = c.gy(0).rank() - 2;
  std::vector<double> unit(static_cast<size_t>(rank * (rank + 1)), 0.0);
  for (int64_t row = 0; row < rank; ++row) unit[static_cast<size_t>(row * (rank + 2))] = 1;
  const Var identity = cast(constant_like(c.in(0), Tensor::of<double>({1, rank, rank + 1}, unit)), theta.dtype());
  const Var points = apply(c.op(), {expand_as(identity, theta), c.in(1)}, c.attributes());
  const Var flat = reshape(points, {0, -1, rank});
  const Var g = reshape(c.gy(0), {0, -1, rank});
  const Var moved = reduce_sum(g, {1});
  c.set(0, concat({matmul(swap_last_two(g), flat), swap_last_two(moved)}, 2));
}

}  // namespace

Var affine_grid(Var theta, Var size, bool align_corners) {
  return apply(affine_grid_def(), {theta, size}, {{"align_corners", int64_t{align_corners}}});
}

const OpDef& affine_grid_def() {
  static const OpDef def{
      .name = "affine_grid",
      .doc = "Sampling positions of an image under affine maps.",
      .inputs = {{"theta", "T1", "[N, 2, 3] or [N, 3, 4]: one map per image."},
                 {"size", "T2", "[N, C, H, W] or [N, C, D, H, W]: size of the image."}},
      .outputs = {{"grid", "T1", "[N, H, W, 2] or [N, D, H, W, 3]."}},
      .types = {{"T1", dtypes::kFloat}, {"T2", dtypes::kI64}},
      .attributes = {{"align_corners", AttributeType::integer, "1: -1 and 1 are centres of corner elements.",
                      int64_t{0}}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .onnx = {{.name = "AffineGrid", .since = 20}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
