// gather: picks slices along `axis`: y[..., i..., ...] = x[..., indices[i...], ...]. The dims of `indices` take the
// place of the axis. Negative indices count from the end.
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/shape.h"
#include "graph/picked_cost.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/index/index_check.h"
#include "ops/sample.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  const Shape& indices = context.shape(1);
  if (x.has_rank() && x.rank() < 1) context.fail<ShapeError>("data", "expected rank 1 or more, got a scalar");
  if (!x.has_rank() || !indices.has_rank()) return context.set_output(0, context.dtype(0), Shape::unknown());
  const int64_t axis = context.normalized_axis(context.attributes().integer("axis"), x.rank());
  std::vector<Dim> dims(x.dims().begin(), x.dims().begin() + axis);
  dims.insert(dims.end(), indices.dims().begin(), indices.dims().end());
  dims.insert(dims.end(), x.dims().begin() + axis + 1, x.dims().end());
  context.set_output(0, context.dtype(0), Shape(std::move(dims)));
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const int64_t axis = front_axis(call.attributes.integer("axis"), x.rank());
  const int64_t extent = x.dim(axis);
  int64_t inner = 1;
  for (int64_t a = axis + 1; a < x.rank(); ++a) inner *= x.dim(a);
  int64_t outer = 1;
  for (int64_t a = 0; a < axis; ++a) outer *= x.dim(a);
  const std::vector<int64_t> indices = checked_indices("gather", call.input(1), extent);
  int64_t at = 0;
  for (int64_t block = 0; block < outer; ++block) {
    for (const int64_t index : indices) {
      copy_run(x, (block * extent + index) * inner, call.output(0), at, inner);
      at += inner;
    }
  }
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 1);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = draw(random, -rank, rank - 1);
  const int64_t extent = dims[static_cast<size_t>(front_axis(axis, rank))];
  return {.inputs = {draw_tensor(random, DType::f32, dims),
                     draw_tensor(random, DType::i64, draw_dims(random, 0, 2), static_cast<double>(-extent),
                                 static_cast<double>(extent - 1))},
          .attributes = {{"axis", axis}}};
}

// Slices are added where they came from; the axis is in front while they are.
void vjp(VjpContext& c) {
  const Var x = c.in(0), indices = c.in(1);
  if (!x.shape().has_rank() || !indices.shape().has_rank()) return moved_elements_vjp(c);
  const int64_t axis = front_axis(c.attributes().integer("axis"), x.rank());
  std::vector<int64_t> to_front{axis}, back, of_gradient;
  for (int64_t a = 0; a < x.rank(); ++a) {
    if (a != axis) to_front.push_back(a);
    back.push_back(a < axis ? a + 1 : a == axis ? 0 : a);
  }
  for (int64_t a = 0; a < indices.rank(); ++a) of_gradient.push_back(axis + a);
  for (int64_t a = 0; a < c.gy(0).rank(); ++a) {
    if (a < axis || a >= axis + indices.rank()) of_gradient.push_back(a);
  }
  const bool is_front = axis == 0;
  const Var zeros = filled_like(is_front ? x : transpose(x, to_front), 0);
  const Var slices = is_front ? c.gy(0) : transpose(c.gy(0), of_gradient);
  const Var sums = scatter_nd(zeros, unsqueeze(cast(indices, DType::i64), {-1}), slices, "add");
  c.set(0, is_front ? sums : transpose(sums, back));
}

}  // namespace

Var gather(Var x, Var indices, int64_t axis) { return apply(gather_def(), {x, indices}, {{"axis", axis}}); }

const OpDef& gather_def() {
  static const OpDef def{
      .name = "gather",
      .doc = "Picks slices of data along axis by index.",
      .inputs = {{"data", "T", "Rank 1 or more."}, {"indices", "I", "Any shape; -extent..extent-1."}},
      .outputs = {{"output", "T", "Shape of data with the axis replaced by the dims of indices."}},
      .types = {{"T", dtypes::kAll}, {"I", dtypes::kIndex}},
      .attributes = {{"axis", AttributeType::integer, "The axis to pick along.", int64_t{0}}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .traits = {.moves = true},
      .cost = picked_cost,
      .onnx = {{"Gather"}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
