// expand: broadcasts to `shape`, both ways as NumPy does: an extent 1 in `shape` keeps the input's extent.
#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/scalar_loops.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  const std::optional<int64_t> length = extents_length(context, 1);
  const auto target = context.known_integers(1);
  Shape y = Shape::unknown();
  if (target) {
    for (const int64_t d : *target) {
      if (d < 0) context.fail<ShapeError>("shape", fmt::format("expected extents of 0 or more, got {}", d));
    }
    if (x.has_rank()) y = broadcast_shapes(context, std::vector<Shape>{x, Shape::of(*target)});
  } else if (length && x.has_rank()) {
    y = Shape::of_rank(std::max(*length, x.rank()));
  }
  context.set_output(0, context.dtype(0), std::move(y));
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const TensorView y = call.output(0);
  const std::vector<int64_t> strides = dense_strides(x.dims());
  Strided source{0, std::vector<int64_t>(y.dims().size(), 0)};
  for (size_t a = 0; a < strides.size(); ++a) {
    if (x.dims()[a] != 1) source.strides[a + y.dims().size() - strides.size()] = strides[a];
  }
  copy_strided(x, source, y, {0, dense_strides(y.dims())}, y.dims());
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random);
  const Dims smaller = draw_broadcastable(random, dims);
  const Dims target = draw_bool(random) ? dims : draw_broadcastable(random, dims);
  return {.inputs = {draw_tensor(random, DType::f32, smaller), Tensor::vector(target)}};
}

}  // namespace

Var expand(Var x, const std::vector<int64_t>& shape) {
  return apply(expand_def(), {x, constant_like(x, Tensor::vector(shape))});
}

const OpDef& expand_def() {
  static const OpDef def{
      .name = "expand",
      .doc = "Broadcasts the input together with a shape.",
      .inputs = {{"input", "T", "Any shape that broadcasts with `shape`."},
                 {"shape", "I", "[n] or, of a single extent, a scalar."}},
      .outputs = {{"output", "T", "The common broadcast shape."}},
      .types = {{"T", dtypes::kAll}, {"I", dtypes::kI64}},
      .infer = infer,
      .reference = reference,
      .vjp = [](VjpContext& c) { c.set(0, c.gy(0)); },
      .traits = {.moves = true},
      .onnx = {{"Expand", 8}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
