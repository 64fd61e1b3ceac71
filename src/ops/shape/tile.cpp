// tile: repeats a tensor `repeats[k]` times along axis k: y[i] = x[i mod extent].
#include "autograph/op_def.h"
#include "autograph/ops/reduction.h"
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
  const std::optional<int64_t> length = list_length(context, 1);
  const auto repeats = context.known_integers(1);
  if (length && x.has_rank() && *length != x.rank()) {
    context.fail<ShapeError>("repeats", fmt::format("expected {} values, one per axis, got {}", x.rank(), *length));
  }
  if (!x.has_rank()) {
    return context.set_output(0, context.dtype(0), length ? Shape::of_rank(*length) : Shape::unknown());
  }
  if (!repeats) return context.set_output(0, context.dtype(0), Shape::of_rank(x.rank()));
  Shape y = x;
  for (int64_t a = 0; a < x.rank(); ++a) {
    const int64_t times = (*repeats)[static_cast<size_t>(a)];
    if (times < 0) context.fail<ValueError>("repeats", fmt::format("expected 0 or more, got {}", times));
    y[a] = x[a] * Dim(times);
  }
  context.set_output(0, context.dtype(0), std::move(y));
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const TensorView y = call.output(0);
  // Seen as [r0, d0, r1, d1, ...] the output is the input broadcast along every r.
  const std::vector<int64_t> x_strides = dense_strides(x.dims());
  const std::vector<int64_t> y_strides = dense_strides(y.dims());
  Strided source;
  Strided target;
  Dims dims;
  for (size_t a = 0; a < x.dims().size(); ++a) {
    const int64_t extent = x.dims()[a];
    if (extent == 0) return;
    dims.insert(dims.end(), {y.dims()[a] / extent, extent});
    source.strides.insert(source.strides.end(), {0, x_strides[a]});
    target.strides.insert(target.strides.end(), {extent * y_strides[a], y_strides[a]});
  }
  copy_strided(x, source, y, target, dims);
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 0, 4, 3);
  std::vector<int64_t> repeats(dims.size());
  for (int64_t& r : repeats) r = draw(random, 0, 3);
  return {.inputs = {draw_tensor(random, DType::f32, dims), Tensor::vector(repeats)}};
}

// Seen as [r0, d0, r1, d1, ...] the gradient is summed over every r.
void vjp(VjpContext& c) {
  const Var x = c.in(0);
  const auto repeats = c.known_integers(1);
  if (!repeats || !x.type().is_static()) return moved_elements_vjp(c);
  std::vector<int64_t> dims, axes;
  for (int64_t a = 0; a < x.rank(); ++a) {
    axes.push_back(static_cast<int64_t>(dims.size()));
    dims.insert(dims.end(), {(*repeats)[static_cast<size_t>(a)], x.dim(a)});
  }
  if (axes.empty()) return c.set(0, c.gy(0));
  const Var wide = reshape(c.gy(0), constant_like(c.in(0), Tensor::vector(dims)), true);
  c.set(0, reduce_sum(wide, axes, false));
}

}  // namespace

Var tile(Var x, const std::vector<int64_t>& repeats) {
  return apply(tile_def(), {x, constant_like(x, Tensor::vector(repeats))});
}

const OpDef& tile_def() {
  static const OpDef def{
      .name = "tile",
      .doc = "Repeats the input along every axis: y[i] = x[i mod extent].",
      .inputs = {{"input", "T", "Any shape."}, {"repeats", "I", "[rank of input]: how often, 0 or more."}},
      .outputs = {{"output", "T", "Extents times repeats."}},
      .types = {{"T", dtypes::kAll}, {"I", dtypes::kI64}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .traits = {.moves = true},
      .onnx = {{"Tile", 6}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
