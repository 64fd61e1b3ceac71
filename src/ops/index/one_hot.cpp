// one_hot: a new axis of extent `depth` at `axis`: values[1] (on) where its position equals the index, values[0] (off)
// elsewhere. Indices may be negative; those outside -depth..depth-1 give off everywhere. Fractions are cut off.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"
#include "ops/shape/copy_elements.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

// -1 for anything that cannot be a position.
template <class T>
int64_t position_of(T value, int64_t depth) {
  const auto real = static_cast<double>(static_cast<ComputeType<T>>(value));
  if (!(real > -static_cast<double>(depth) - 1 && real < static_cast<double>(depth))) return -1;
  const auto index = static_cast<int64_t>(real);
  return index < 0 ? index + depth : index;
}

void infer(InferContext& context) {
  const Shape& indices = context.shape(0);
  context.require_rank(2, 1);
  if (context.shape(2).has_rank()) merged_dim(context, context.shape(2)[0], 2, "values");
  Dim depth = Dim::unknown();
  if (const Tensor* known = context.known_value(1)) {
    if (known->num_elements() != 1) {
      context.fail<ShapeError>("depth", fmt::format("expected one element, got shape {}", to_string(known->dims())));
    }
    const double value = known->to_f64()[0];
    if (!(value >= 0 && value < 0x1p62)) {
      context.fail<ValueError>("depth", fmt::format("expected 0 or more, got {}", value));
    }
    depth = static_cast<int64_t>(value);
  }
  if (!indices.has_rank()) return context.set_output(0, context.dtype(2), Shape::unknown());
  const int64_t axis = context.normalized_axis(context.attributes().integer("axis"), indices.rank() + 1);
  Shape y = indices;
  y.dims().insert(y.dims().begin() + axis, depth);
  context.set_output(0, context.dtype(2), std::move(y));
}

void reference(const OpCall& call) {
  const TensorView indices = call.input(0);
  const TensorView y = call.output(0);
  const TensorView values = call.input(2);
  const int64_t axis = front_axis(call.attributes.integer("axis"), y.rank());
  const int64_t depth = y.dim(axis);
  int64_t inner = 1;
  for (int64_t a = axis; a < indices.rank(); ++a) inner *= indices.dim(a);
  fill_with(y, values);
  dispatch<NumericTypes>(indices.dtype(), [&]<class T>(TypeTag<T>) {
    for (int64_t i = 0; i < indices.num_elements(); ++i) {
      const int64_t position = position_of(indices.data<T>()[i], depth);
      if (position >= 0) copy_run(values, 1, y, (i / inner * depth + position) * inner + i % inner, 1);
    }
  });
}

// Each element of the output is one of the two values.
void vjp(VjpContext& c) {
  c.set_none(0);
  c.set_none(1);
  if (!c.wants(2)) return;
  const Var is_on =
      apply(c.op(), {c.in(0), c.in(1), constant_like(c.in(0), Tensor::of<bool>({2}, {false, true}))}, c.attributes());
  const Var zero = scalar_like(c.gy(0), 0);
  const auto total = [](const Var& part) { return reshape(reduce_sum(part, {}, false), {1}); };
  c.set(2, concat({total(where(is_on, zero, c.gy(0))), total(where(is_on, c.gy(0), zero))}, 0));
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 0, 3);
  const auto rank = static_cast<int64_t>(dims.size()) + 1;
  const int64_t depth = draw(random, 1, 5);
  return {.inputs = {draw_tensor(random, DType::i64, dims, static_cast<double>(-depth - 1), static_cast<double>(depth)),
                     Tensor::scalar(depth), draw_tensor(random, DType::f32, {2})},
          .attributes = {{"axis", draw(random, -rank, rank - 1)}}};
}

}  // namespace

Var one_hot(Var indices, Var depth, Var values, int64_t axis) {
  return apply(one_hot_def(), {indices, depth, values}, {{"axis", axis}});
}

const OpDef& one_hot_def() {
  static const OpDef def{
      .name = "one_hot",
      .doc = "A new axis that holds `on` at the index and `off` elsewhere.",
      .inputs = {{"indices", "T1", "Any shape."},
                 {"depth", "T2", "One element: extent of the new axis."},
                 {"values", "T3", "[2]: off, on."}},
      .outputs = {{"output", "T3", "Shape of indices with the new axis."}},
      .types = {{"T1", dtypes::kNumeric}, {"T2", dtypes::kNumeric}, {"T3", dtypes::kAll}},
      .attributes = {{"axis", AttributeType::integer, "Where the new axis stands in the output.", int64_t{-1}}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .onnx = {{"OneHot", 9}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
