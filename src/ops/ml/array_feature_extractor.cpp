// array_feature_extractor: picks columns, the last dim of x, by index. A vector counts as one row.
#include "autograph/op_def.h"
#include "autograph/ops/ml.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/index/index_check.h"
#include "ops/sample.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  if (!x.has_rank()) return context.set_output(0, context.dtype(0), Shape::unknown());
  if (x.rank() == 0) context.fail<ShapeError>("x", "expected rank 1 or more, got a scalar");
  Dim count = Dim::unknown();
  if (const auto known = context.shape(1).is_static() ? context.shape(1).num_elements() : std::nullopt) count = *known;
  Shape z = x;
  if (z.rank() == 1) z.dims().insert(z.dims().begin(), 1);
  z[z.rank() - 1] = count;
  context.set_output(0, context.dtype(0), std::move(z));
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const int64_t columns = x.dim(x.rank() - 1);
  const std::vector<int64_t> indices = checked_indices("array_feature_extractor", call.input(1), columns);
  int64_t rows = 1;
  for (int64_t a = 0; a + 1 < x.rank(); ++a) rows *= x.dim(a);
  int64_t at = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (const int64_t index : indices) copy_run(x, row * columns + index, call.output(0), at++, 1);
  }
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 1);
  return {.inputs = {draw_tensor(random, DType::f32, dims), draw_tensor(random, DType::i64, {1, draw(random, 1, 3)}, 0,
                                                                        static_cast<double>(dims.back() - 1))}};
}

}  // namespace

Var array_feature_extractor(Var x, Var indices) { return apply(array_feature_extractor_def(), {x, indices}); }

const OpDef& array_feature_extractor_def() {
  static const OpDef def{
      .name = "array_feature_extractor",
      .doc = "Picks columns (positions in the last dim) by index.",
      .inputs = {{"x", "T", "[..., columns]."}, {"y", "I", "Indices, any shape."}},
      .outputs = {{"z", "T", "[..., number of indices]; [1, n] for a vector."}},
      .types = {{"T", {DType::f32, DType::f64, DType::i64, DType::i32, DType::string}}, {"I", dtypes::kI64}},
      .infer = infer,
      .reference = reference,
      .vjp = moved_elements_vjp,
      .onnx = {{.name = "ArrayFeatureExtractor", .domain = "ai.onnx.ml"}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
