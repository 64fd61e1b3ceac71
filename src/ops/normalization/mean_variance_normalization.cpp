// mean_variance_normalization: y = (x - mean) / (sqrt(var) + 1e-9), mean and population variance over `axes`.
#include <algorithm>
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/normalization.h"
#include "ops/broadcast_offsets.h"
#include "ops/defs.h"
#include "ops/real_values.h"
#include "ops/sample.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

constexpr double kEpsilon = 1e-9;  // the constant of the ONNX function

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  if (x.has_rank()) {
    for (const int64_t axis : context.attributes().integers("axes")) context.normalized_axis(axis, x.rank(), "axes");
  }
  context.set_output(0, context.dtype(0), x);
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  Dims kept(x.dims().begin(), x.dims().end());
  for (const int64_t axis : call.attributes.integers("axes")) {
    kept[static_cast<size_t>(front_axis(axis, x.rank()))] = 1;
  }
  const std::vector<int64_t> group_of = broadcast_offsets(kept, x.dims());
  std::vector<double> values = real_values(x);
  std::vector<double> sums(values.size(), 0.0);
  std::vector<double> squares(values.size(), 0.0);
  std::vector<double> counts(values.size(), 0.0);
  for (size_t i = 0; i < values.size(); ++i) {
    sums[static_cast<size_t>(group_of[i])] += values[i];
    ++counts[static_cast<size_t>(group_of[i])];
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const auto group = static_cast<size_t>(group_of[i]);
    values[i] -= sums[group] / counts[group];
    squares[group] += values[i] * values[i];
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const auto group = static_cast<size_t>(group_of[i]);
    values[i] /= std::sqrt(squares[group] / counts[group]) + kEpsilon;
  }
  store_reals(values, call.output(0));
}

std::vector<Var> decompose(DecomposeContext& context) {
  const Var x = context.inputs[0];
  const auto binary = [](std::string_view op, Var a, Var b) { return apply(get_op(op), {a, b}); };
  const std::vector<int64_t>& list = context.attributes.integers("axes");
  if (list.empty()) {  // every element is its own group
    const Var centered = binary("sub", x, x);
    return {binary("div", centered, scalar_like(x, kEpsilon))};
  }
  const Var axes = constant(context.graph, Tensor::vector(list));
  const Var centered = binary("sub", x, binary("reduce_mean", x, axes));
  const Var variance = binary("reduce_mean", binary("mul", centered, centered), axes);
  const Var deviation = apply(get_op("sqrt"), {variance});
  return {binary("div", centered, binary("add", deviation, scalar_like(x, kEpsilon)))};
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 1, 4);
  const auto rank = static_cast<int64_t>(dims.size());
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (draw_bool(random)) axes.push_back(draw_bool(random) ? axis : axis - rank);
  }
  if (axes.empty()) axes.push_back(rank - 1);
  return {.inputs = {draw_tensor(random, DType::f32, dims)}, .attributes = {{"axes", axes}}};
}

}  // namespace

Var mean_variance_normalization(Var x, std::vector<int64_t> axes) {
  return apply(mean_variance_normalization_def(), {x}, {{"axes", std::move(axes)}});
}

const OpDef& mean_variance_normalization_def() {
  static const OpDef def{
      .name = "mean_variance_normalization",
      .doc = "y = (x - mean) / (sqrt(var) + 1e-9), with statistics over axes.",
      .inputs = {{"x", "T", "Any shape that has the axes."}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"T", dtypes::kFloat}},
      .attributes = {{"axes", AttributeType::integers, "The axes to average over.", std::vector<int64_t>{0, 2, 3}}},
      .infer = infer,
      .reference = reference,
      .decompose = decompose,
      .onnx = {{.name = "MeanVarianceNormalization", .since = 9, .export_since = 13}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
