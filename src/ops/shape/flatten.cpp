// flatten: a matrix [product of the dims before `axis`, product of the rest]. `axis` may equal the rank.
#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  if (!x.has_rank()) return context.set_output(0, context.dtype(0), Shape::of_rank(2));
  const int64_t rank = x.rank();
  int64_t axis = context.attributes().integer("axis");
  if (axis != rank) axis = context.normalized_axis(axis, rank);
  Dim rows = 1;
  Dim columns = 1;
  for (int64_t a = 0; a < rank; ++a) {
    Dim& side = a < axis ? rows : columns;
    side = side * x[a];
  }
  context.set_output(0, context.dtype(0), {rows, columns});
}

void reference(const OpCall& call) { copy_all(call.input(0), call.output(0)); }

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random);
  const auto rank = static_cast<int64_t>(dims.size());
  return {.inputs = {draw_tensor(random, DType::f32, dims)}, .attributes = {{"axis", draw(random, -rank, rank)}}};
}

}  // namespace

Var flatten(Var x, int64_t axis) { return apply(flatten_def(), {x}, {{"axis", axis}}); }

const OpDef& flatten_def() {
  static const OpDef def{
      .name = "flatten",
      .doc = "A matrix whose rows run over the dims before axis and whose columns run over the rest.",
      .inputs = {{"input", "T", "Any shape."}},
      .outputs = {{"output", "T", "[product of dims before axis, product of the others]."}},
      .types = {{"T", dtypes::kAll}},
      .attributes = {{"axis", AttributeType::integer, "First dim of the columns, -rank..rank.", int64_t{1}}},
      .infer = infer,
      .reference = reference,
      .vjp = [](VjpContext& c) { c.set(0, reshape_as(c.gy(0), c.in(0))); },
      .traits = {.view = true, .moves = true},
      .onnx = {{"Flatten"}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
