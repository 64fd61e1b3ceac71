// eye_like: a matrix of the input's shape with ones on diagonal `k` (above the main one when positive), zeros
// elsewhere.
#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/shape/copy_elements.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  context.require_rank(0, 2);
  const Shape& x = context.shape(0);
  context.set_output(0, context.attributes().get_or<DType>("dtype", context.dtype(0)),
                     x.has_rank() ? x : Shape::of_rank(2));
}

void reference(const OpCall& call) {
  const TensorView y = call.output(0);
  const int64_t k = call.attributes.integer("k");
  fill_with(y, {});
  dispatch<Concat<NumericTypes, TypeList<bool>>>(y.dtype(), [&]<class T>(TypeTag<T>) {
    T* out = y.mutable_data<T>();
    for (int64_t row = 0; row < y.dim(0); ++row) {
      // k may be any number: compare before adding.
      if (k >= -row && k < y.dim(1) - row) out[row * y.dim(1) + row + k] = T(1);
    }
  });
}

OpSample sample(Random& random) {
  OpSample result{.inputs = {draw_tensor(random, DType::f32, draw_dims(random, 2, 2))},
                  .attributes = {{"k", draw(random, -3, 3)}}};
  if (draw_bool(random)) result.attributes.set("dtype", draw_one_of(random, {DType::f32, DType::i32, DType::boolean}));
  return result;
}

}  // namespace

Var eye_like(Var x, int64_t k) { return apply(eye_like_def(), {x}, {{"k", k}}); }

const OpDef& eye_like_def() {
  static constexpr DTypeSet kAllowed = dtypes::kNumeric | dtypes::kBool;
  static const OpDef def{
      .name = "eye_like",
      .doc = "Ones on diagonal k, zeros elsewhere, in the shape of the input.",
      .inputs = {{"input", "T1", "A matrix; only its shape is read."}},
      .outputs = {{"output", "T2", "Shape of input."}},
      .types = {{"T1", kAllowed}, {"T2", kAllowed}},
      .attributes = {{"dtype", AttributeType::dtype, "Dtype of the output; that of the input when absent."},
                     {"k", AttributeType::integer, "Which diagonal; 0 is the main one.", int64_t{0}}},
      .infer = infer,
      .reference = reference,
      .no_grad = "the output depends on the shape alone",
      .traits = {.reads_shape_only = true},
      .onnx = {{"EyeLike", 9}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
