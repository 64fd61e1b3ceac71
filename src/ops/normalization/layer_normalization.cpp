// layer_normalization: y = (x - mean) / sqrt(var + epsilon) * scale + bias, mean and population variance over the dims
// from `axis` on.
//
// Statistics are computed in f64 and the two optional outputs rounded to stash_type; rows without elements give NaN
// statistics. scale and bias broadcast to x.
#include <cmath>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/normalization/norm_gradients.h"
#include "ops/normalization/normalized_dims.h"
#include "ops/real_values.h"
#include "ops/sample.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  check_normalized_inputs(context);
  const DType stash = context.attributes().get<DType>("stash_type");
  context.set_output(0, context.dtype(0), context.shape(0));
  context.set_output(1, stash, statistics_shape(context));
  context.set_output(2, stash, statistics_shape(context));
}

struct RowStatistics {
  double mean;
  double inverse_deviation;
};

template <class T>
RowStatistics row_statistics(std::span<const T> row, double epsilon) {
  double sum = 0;
  for (const T& v : row) sum += static_cast<double>(v);
  const double mean = sum / static_cast<double>(row.size());
  double squares = 0;
  for (const T& v : row) squares += (static_cast<double>(v) - mean) * (static_cast<double>(v) - mean);
  return {mean, 1 / std::sqrt(squares / static_cast<double>(row.size()) + epsilon)};
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const NormalizedRows rows = normalized_rows(call.attributes, x);
  const BroadcastParameter scale(call.input(1), x, 1.0);
  const BroadcastParameter bias(call.input(2), x, 0.0);
  const double epsilon = call.attributes.real("epsilon");
  std::vector<double> means;
  std::vector<double> inverse_deviations;
  dispatch<FloatTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* in = x.data<T>();
    T* out = call.output(0).mutable_data<T>();
    for (int64_t row = 0; row < rows.num_rows; ++row) {
      const int64_t begin = row * rows.row_size;
      const auto [mean, inverse] =
          row_statistics(std::span<const T>(in + begin, static_cast<size_t>(rows.row_size)), epsilon);
      for (int64_t i = begin; i < begin + rows.row_size; ++i) {
        out[i] = static_cast<T>((static_cast<double>(in[i]) - mean) * inverse * scale.at(i) + bias.at(i));
      }
      means.push_back(mean);
      inverse_deviations.push_back(inverse);
    }
  });
  if (call.has_output(1)) store_reals(means, call.output(1));
  if (call.has_output(2)) store_reals(inverse_deviations, call.output(2));
}

// The two stages of the ONNX function: statistics in stash_type, scale and bias in the dtype of x.
std::vector<Var> decompose(DecomposeContext& context) {
  const auto [x, scale] = std::pair(context.inputs[0], context.inputs[1]);
  const DType stash = context.attributes.get<DType>("stash_type");
  const auto cast_to = [](Var v, DType dtype) {
    return v.dtype() == dtype ? v : apply(get_op("cast"), {v}, {{"to", dtype}});
  };
  const auto binary = [](std::string_view op, Var a, Var b) { return apply(get_op(op), {a, b}); };
  const Var axes = normalized_axes(context);
  const Var wide = cast_to(x, stash);
  const Var mean = apply(get_op("reduce_mean"), {wide, axes});
  const Var centered = binary("sub", wide, mean);
  const Var variance = apply(get_op("reduce_mean"), {binary("mul", centered, centered), axes});
  const Var deviation =
      apply(get_op("sqrt"), {binary("add", variance, scalar_like(variance, context.attributes.real("epsilon")))});
  const Var inverse = apply(get_op("reciprocal"), {deviation});
  Var y = binary("mul", cast_to(binary("mul", centered, inverse), x.dtype()), scale);
  if (context.inputs.size() > 2 && context.inputs[2].is_valid()) y = binary("add", y, context.inputs[2]);
  return {y, mean, inverse};
}

// What flows back through the mean and through 1 / deviation, where somebody reads those, besides.
Var with_statistics(VjpContext& c, Var gradient, const NormalizedParts& parts, const std::vector<int64_t>& axes) {
  const Var x = c.in(0);
  if (c.num_outputs() < 2) return gradient;
  const Var count = reduce_sum(filled_like(x, 1), axes);
  if (c.has_gy(1)) gradient = gradient + expand_as(cast(c.gy(1), x.dtype()) / count, x);
  if (c.num_outputs() < 3 || !c.has_gy(2)) return gradient;
  const Var cube = parts.inverse * parts.inverse * parts.inverse;
  return gradient - cast(c.gy(2), x.dtype()) / count * cube * parts.centred;
}

// The op for the gradient, or its formula where scale is stretched along an axis that is normalised.
void set_normal_gradients(VjpContext& c, const NormalizedParts& parts, const std::vector<int64_t>& axes) {
  const Var x = c.in(0), scale = c.in(1);
  const bool is_tail = scale.shape().rank() == static_cast<int64_t>(axes.size()) &&
                       std::equal(scale.shape().dims().begin(), scale.shape().dims().end(),
                                  x.shape().dims().end() - static_cast<int64_t>(axes.size()));
  std::vector<Var> gradients;
  if (is_tail) {
    gradients =
        layer_normalization_grad(x, scale, c.gy(0), c.attributes().integer("axis"), c.attributes().real("epsilon"));
  } else {
    gradients = {through_normalization(parts, c.gy(0) * scale, axes), c.gy(0) * parts.normal, c.gy(0)};
  }
  for (size_t slot = 1; slot < gradients.size(); ++slot) {
    if (c.has_input(slot) && c.wants(slot)) c.set(slot, gradients[slot]);
  }
  if (c.wants(0)) c.set(0, with_statistics(c, gradients[0], parts, axes));
}

void vjp(VjpContext& c) {
  const Var x = c.in(0);
  if (!x.shape().has_rank() || !c.in(1).shape().has_rank()) c.unsupported("its rule needs known ranks");
  const int64_t axis = c.attributes().integer("axis");
  std::vector<int64_t> axes;
  for (int64_t a = front_axis(axis, x.rank()); a < x.rank(); ++a) axes.push_back(a);
  set_normal_gradients(c, normalized_parts(x, axes, c.attributes().real("epsilon")), axes);
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 1, 4);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = draw(random, -rank, rank - 1);
  const Dims tail(dims.begin() + front_axis(axis, rank), dims.end());
  OpSample result;
  result.inputs = {draw_tensor(random, DType::f32, dims), draw_tensor(random, DType::f32, tail)};
  if (draw_bool(random)) result.inputs.emplace_back(draw_tensor(random, DType::f32, tail));
  result.attributes = {{"axis", axis}, {"epsilon", draw_one_of(random, {1e-5f, 1e-2f})}};
  result.num_outputs = static_cast<int>(draw_one_of(random, {1, 3}));
  return result;
}

}  // namespace

Var layer_normalization(Var x, Var scale, Var bias, int64_t axis, float epsilon) {
  return apply(layer_normalization_def(), {x, scale, bias}, {{"axis", axis}, {"epsilon", epsilon}});
}

const OpDef& layer_normalization_def() {
  static const OpDef def{
      .name = "layer_normalization",
      .doc = "y = (x - mean) / sqrt(var + epsilon) * scale + bias, with statistics over the dims from axis on.",
      .inputs = {{"x", "T", "Any shape of rank 1 or more."},
                 {"scale", "T", "Broadcasts to x; usually the dims of x from axis on."},
                 {"bias", "T", "Broadcasts to x; nothing is added when missing.", Arity::optional}},
      .outputs = {{"y", "T", "Shape of x."},
                  {"mean", "U", "Shape of x with extents 1 from axis on.", Arity::optional},
                  {"inv_std_dev", "U", "1 / sqrt(var + epsilon), shaped as mean.", Arity::optional}},
      .types = {{"T", dtypes::kFloat}, {"U", DTypeSet{DType::f32, DType::bf16, DType::f16, DType::f64}}},
      .attributes = {{"axis", AttributeType::integer, "First dim to normalise over.", int64_t{-1}},
                     {"epsilon", AttributeType::real, "Added to the variance.", 1e-5f},
                     {"stash_type", AttributeType::dtype, "Dtype of the statistics.", DType::f32}},
      .infer = infer,
      .reference = reference,
      .decompose = decompose,
      .vjp = vjp,
      .onnx = {{.name = "LayerNormalization", .since = 1, .export_since = 17}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
