// unsqueeze: inserts dims of extent 1 so that they stand at `axes` of the output.
#include <algorithm>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  const DType dtype = context.dtype(0);
  // The operator takes a scalar as a list of one.
  if (!(context.shape(1).has_rank() && context.shape(1).rank() == 0)) context.require_rank(1, 1);
  const auto count = context.shape(1).is_static() ? context.shape(1).num_elements() : std::nullopt;
  if (!x.has_rank() || !count) return context.set_output(0, dtype, Shape::unknown());
  const int64_t rank = x.rank() + *count;
  const auto axes = context.known_integers(1);
  if (!axes) return context.set_output(0, dtype, Shape::of_rank(rank));
  const std::vector<int64_t> inserted = normalized_axes(context, *axes, rank);
  std::vector<Dim> dims;
  int64_t next = 0;
  for (int64_t a = 0; a < rank; ++a) {
    const bool is_new = std::find(inserted.begin(), inserted.end(), a) != inserted.end();
    dims.push_back(is_new ? Dim(1) : x[next++]);
  }
  context.set_output(0, dtype, Shape(std::move(dims)));
}

void reference(const OpCall& call) { copy_all(call.input(0), call.output(0)); }

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 0, 3);
  const auto rank = static_cast<int64_t>(dims.size()) + 2;
  const int64_t first = draw(random, 0, rank - 1);
  const int64_t second = (first + draw(random, 1, rank - 1)) % rank;
  return {.inputs = {draw_tensor(random, DType::f32, dims),
                     Tensor::vector({first, draw_bool(random) ? second : second - rank})}};
}

std::vector<ValueId> import_onnx(ForeignNode& node) {
  node.integers_to_input("axes", 1);  // an attribute before opset 13
  return node.emit();
}

}  // namespace

Var unsqueeze(Var x, const std::vector<int64_t>& axes) {
  return apply(unsqueeze_def(), {x, constant_like(x, Tensor::vector(axes))});
}

const OpDef& unsqueeze_def() {
  static const OpDef def{
      .name = "unsqueeze",
      .doc = "Inserts dims of extent 1 at the given axes of the output.",
      .inputs = {{"data", "T", "Any shape."}, {"axes", "I", "[n]: where the new dims stand in the output."}},
      .outputs = {{"expanded", "T", "Shape of data with n more dims."}},
      .types = {{"T", dtypes::kAll}, {"I", dtypes::kI64}},
      .infer = infer,
      .reference = reference,
      .vjp = [](VjpContext& c) { c.set(0, reshape_as(c.gy(0), c.in(0))); },
      .traits = {.view = true, .moves = true},
      .onnx = {{.name = "Unsqueeze", .import = import_onnx, .export_since = 13}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
