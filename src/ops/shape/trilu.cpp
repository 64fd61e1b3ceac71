// trilu: keeps the upper or lower triangle of each matrix in the last two dims and sets the rest to 0. `k` shifts the
// diagonal: upper keeps column - row >= k, lower keeps column - row <= k.
#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  if (x.has_rank() && x.rank() < 2) {
    context.fail<ShapeError>("input", fmt::format("expected rank 2 or more, got {}", to_string(x)));
  }
  if (const Tensor* k = context.known_value(1); k && k->num_elements() != 1) {
    context.fail<ShapeError>("k", fmt::format("expected one element, got shape {}", to_string(k->dims())));
  }
  context.set_output(0, context.dtype(0), x);
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const TensorView y = call.output(0);
  const int64_t k = call.input(1).is_present() ? *call.input(1).data<int64_t>() : 0;
  const bool upper = call.attributes.flag("upper");
  const int64_t columns = x.dim(x.rank() - 1);
  const int64_t rows = x.dim(x.rank() - 2);
  dispatch_storage(x.dtype(), [&]<class T>() {
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const int64_t offset = i % columns - i / columns % rows;
      out[i] = (upper ? offset >= k : offset <= k) ? in[i] : T{};
    }
  });
}

OpSample sample(Random& random) {
  OpSample result{.inputs = {draw_tensor(random, DType::f32, draw_dims(random, 2, 4))},
                  .attributes = {{"upper", draw(random, 0, 1)}}};
  if (draw_bool(random)) result.inputs.emplace_back(Tensor::scalar(draw(random, -5, 5)));
  return result;
}

}  // namespace

Var triu(Var x, int64_t k) {
  return apply(trilu_def(), {x, constant_like(x, Tensor::scalar(k))}, {{"upper", int64_t{1}}});
}

Var tril(Var x, int64_t k) {
  return apply(trilu_def(), {x, constant_like(x, Tensor::scalar(k))}, {{"upper", int64_t{0}}});
}

const OpDef& trilu_def() {
  static const OpDef def{
      .name = "trilu",
      .doc = "Keeps the upper or lower triangle of matrices; the rest becomes 0.",
      .inputs = {{"input", "T", "[..., rows, columns]."},
                 {"k", "I", "One element: the diagonal to start from; 0 when not given.", Arity::optional}},
      .outputs = {{"output", "T", "Shape of input."}},
      .types = {{"T", dtypes::kAll}, {"I", dtypes::kI64}},
      .attributes = {{"upper", AttributeType::integer, "1: keep the upper triangle, 0: the lower one.", int64_t{1}}},
      .infer = infer,
      .reference = reference,
      .vjp =
          [](VjpContext& c) {
            c.set(0, apply(c.op(), {c.gy(0), c.in(1)}, c.attributes()));
          },
      .traits = {.moves = true},
      .onnx = {{"Trilu", 14}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
