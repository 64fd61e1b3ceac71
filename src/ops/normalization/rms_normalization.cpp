// rms_normalization: y = x / sqrt(mean(x^2) + epsilon) * scale, the mean over the dims from `axis` on.
//
// y has the dtype of scale. The reference computes in f64 whatever stash_type says; the decomposition honours it.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/normalization.h"
#include "ops/defs.h"
#include "ops/normalization/normalized_dims.h"
#include "ops/real_values.h"
#include "ops/sample.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  check_normalized_inputs(context);
  context.set_output(0, context.dtype(1), context.shape(0));
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const auto [num_rows, row_size] = normalized_rows(call.attributes, x);
  const BroadcastParameter scale(call.input(1), x, 1.0);
  const double epsilon = call.attributes.real("epsilon");
  std::vector<double> values = real_values(x);
  for (int64_t row = 0; row < num_rows; ++row) {
    const std::span<double> elements(values.data() + row * row_size, static_cast<size_t>(row_size));
    double squares = 0;
    for (const double v : elements) squares += v * v;
    const double factor = 1 / std::sqrt(squares / static_cast<double>(row_size) + epsilon);
    for (size_t i = 0; i < elements.size(); ++i) {
      elements[i] *= factor * scale.at(row * row_size + static_cast<int64_t>(i));
    }
  }
  store_reals(values, call.output(0));
}

std::vector<Var> decompose(DecomposeContext& context) {
  const Var scale = context.inputs[1];
  const auto cast_to = [](Var v, DType dtype) {
    return v.dtype() == dtype ? v : apply(get_op("cast"), {v}, {{"to", dtype}});
  };
  const auto binary = [](std::string_view op, Var a, Var b) { return apply(get_op(op), {a, b}); };
  const Var wide = cast_to(context.inputs[0], context.attributes.get<DType>("stash_type"));
  const Var mean = binary("reduce_mean", binary("mul", wide, wide), normalized_axes(context));
  const Var shifted = binary("add", mean, scalar_like(mean, context.attributes.real("epsilon")));
  const Var normal = binary("div", wide, apply(get_op("sqrt"), {shifted}));
  return {binary("mul", cast_to(normal, scale.dtype()), scale)};
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 1, 4);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = draw(random, -rank, rank - 1);
  const Dims tail(dims.begin() + front_axis(axis, rank), dims.end());
  return {.inputs = {draw_tensor(random, DType::f32, dims),
                     draw_tensor(random, DType::f32, draw_broadcastable(random, tail))},
          .attributes = {{"axis", axis}, {"epsilon", draw_one_of(random, {1e-5f, 1e-2f})}}};
}

}  // namespace

Var rms_normalization(Var x, Var scale, int64_t axis, float epsilon) {
  return apply(rms_normalization_def(), {x, scale}, {{"axis", axis}, {"epsilon", epsilon}});
}

const OpDef& rms_normalization_def() {
  static const OpDef def{
      .name = "rms_normalization",
      .doc = "y = x / sqrt(mean(x^2) + epsilon) * scale, with the mean over the dims from axis on.",
      .inputs = {{"x", "T", "Any shape of rank 1 or more."}, {"scale", "V", "Broadcasts to x."}},
      .outputs = {{"y", "V", "Shape of x."}},
      .types = {{"T", dtypes::kFloat}, {"V", dtypes::kFloat}},
      .attributes = {{"axis", AttributeType::integer, "First dim to normalise over.", int64_t{-1}},
                     {"epsilon", AttributeType::real, "Added to the mean square.", 1e-5f},
                     {"stash_type", AttributeType::dtype, "Dtype of the statistics.", DType::f32}},
      .infer = infer,
      .reference = reference,
      .decompose = decompose,
      .onnx = {{.name = "RMSNormalization", .export_since = 23}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
