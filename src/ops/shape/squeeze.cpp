// squeeze: drops the dims of extent 1 named by `axes`, or all of them when `axes` is not given.
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

// Without axes every 1 goes; while an extent is open, so is the rank.
Shape squeeze_all(const Shape& x) {
  if (!x.is_static()) return Shape::unknown();
  std::vector<Dim> dims;
  for (const Dim& d : x.dims()) {
    if (d.value() != 1) dims.push_back(d);
  }
  return Shape(std::move(dims));
}

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  const DType dtype = context.dtype(0);
  if (!context.has_input(1)) return context.set_output(0, dtype, squeeze_all(x));
  const std::optional<int64_t> length = list_length(context, 1);
  const auto axes = context.known_integers(1);
  if (!x.has_rank()) return context.set_output(0, dtype, Shape::unknown());
  if (!axes) {
    const bool has_rank = length && *length <= x.rank();
    return context.set_output(0, dtype, has_rank ? Shape::of_rank(x.rank() - *length) : Shape::unknown());
  }
  const std::vector<int64_t> dropped = normalized_axes(context, *axes, x.rank());
  std::vector<Dim> dims;
  for (int64_t a = 0; a < x.rank(); ++a) {
    if (std::find(dropped.begin(), dropped.end(), a) == dropped.end()) {
      dims.push_back(x[a]);
    } else if (x[a].value_or(1) != 1) {
      context.fail<ShapeError>("axes", fmt::format("expected extent 1 at axis {}, got {}", a, to_string(x)));
    }
  }
  context.set_output(0, dtype, Shape(std::move(dims)));
}

void reference(const OpCall& call) { copy_all(call.input(0), call.output(0)); }

OpSample sample(Random& random) {
  Dims dims = draw_dims(random, 1, 4, 3);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = draw(random, 0, rank - 1);
  dims[static_cast<size_t>(axis)] = 1;
  OpSample result{.inputs = {draw_tensor(random, DType::f32, dims)}};
  if (draw_bool(random)) result.inputs.emplace_back(Tensor::vector({draw_bool(random) ? axis : axis - rank}));
  return result;
}

std::vector<ValueId> import_onnx(ForeignNode& node) {
  node.integers_to_input("axes", 1);  // an attribute before opset 13
  return node.emit();
}

}  // namespace

Var squeeze(Var x, const std::vector<int64_t>& axes) {
  return apply(squeeze_def(), {x, constant_like(x, Tensor::vector(axes))});
}

const OpDef& squeeze_def() {
  static const OpDef def{
      .name = "squeeze",
      .doc = "Drops dims of extent 1: those in axes, or all.",
      .inputs = {{"data", "T", "Any shape."},
                 {"axes", "I", "[n]: axes to drop, each of extent 1; all when not given.", Arity::optional}},
      .outputs = {{"squeezed", "T", "Shape of data without the dropped axes."}},
      .types = {{"T", dtypes::kAll}, {"I", dtypes::kI64}},
      .infer = infer,
      .reference = reference,
      .vjp = [](VjpContext& c) { c.set(0, reshape_as(c.gy(0), c.in(0))); },
      .traits = {.view = true, .moves = true},
      .onnx = {{.name = "Squeeze", .import = import_onnx, .export_since = 13}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
