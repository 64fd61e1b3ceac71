// layer_normalization_grad: what flows into x, scale and bias of layer_normalization whose scale has the dims that are
// normalised. With rows of n elements, normal = (x - mean) / sqrt(var + epsilon) and g = gy * scale
//
//   gx = (g - mean(g) - normal * mean(g * normal)) / sqrt(var + epsilon)
//   gscale = sum of gy * normal over the rows   gbias = sum of gy over the rows
//
// The statistics of a row are formed again, while it is in the first cache. Rows without elements give nothing.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/reduction.h"
#include "graph/moved_bytes.h"
#include "ops/defs.h"
#include "ops/extents.h"
#include "ops/normalization/norm_gradients.h"
#include "ops/normalization/normalized_dims.h"
#include "ops/real_values.h"
#include "ops/sample.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

int64_t first_axis(const Attributes& attributes, int64_t rank) { return front_axis(attributes.integer("axis"), rank); }

void infer(InferContext& context) {
  check_normalized_inputs(context);
  const Shape& x = context.shape(0);
  const Shape& scale = context.shape(1);
  const Shape& gy = context.shape(2);
  if (x.has_rank()) {
    const int64_t axis = first_axis(context.attributes(), x.rank());
    if (scale.has_rank()) context.require_rank(1, x.rank() - axis);
    if (gy.has_rank()) context.require_rank(2, x.rank());
    for (int64_t a = 0; a < x.rank(); ++a) {
      if (scale.has_rank() && a >= axis) same_extent(context, x[a], scale[a - axis], "scale");
      if (gy.has_rank()) same_extent(context, x[a], gy[a], "gy");
    }
  }
  context.set_output(0, context.dtype(0), x);
  context.set_output(1, context.dtype(0), scale);
  context.set_output(2, context.dtype(0), scale);
}

struct Row {
  double mean = 0, inverse = 0;
  double g = 0, product = 0;  // means of g and of g * normal
};

template <class T>
Row sums_of(const T* x, const T* gy, const std::vector<double>& scale, double epsilon) {
  Row row;
  const auto count = static_cast<double>(scale.size());
  for (size_t i = 0; i < scale.size(); ++i) row.mean += static_cast<double>(x[i]) / count;
  double variance = 0;
  for (size_t i = 0; i < scale.size(); ++i) {
    variance += (static_cast<double>(x[i]) - row.mean) * (static_cast<double>(x[i]) - row.mean) / count;
  }
  row.inverse = 1 / std::sqrt(variance + epsilon);
  for (size_t i = 0; i < scale.size(); ++i) {
    const double g = static_cast<double>(gy[i]) * scale[i];
    row.g += g / count;
    row.product += g * (static_cast<double>(x[i]) - row.mean) * row.inverse / count;
  }
  return row;
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const NormalizedRows rows = normalized_rows(call.attributes, x);
  const std::vector<double> scale = real_values(call.input(1));
  const double epsilon = call.attributes.real("epsilon");
  std::vector<double> of_scale(scale.size(), 0.0), of_bias(scale.size(), 0.0);
  dispatch<FloatTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    for (int64_t r = 0; r < rows.num_rows; ++r) {
      const T* in = x.data<T>() + r * rows.row_size;
      const T* gy = call.input(2).data<T>() + r * rows.row_size;
      T* gx = call.output(0).mutable_data<T>() + r * rows.row_size;
      const Row row = sums_of(in, gy, scale, epsilon);
      for (size_t i = 0; i < scale.size(); ++i) {
        const double normal = (static_cast<double>(in[i]) - row.mean) * row.inverse;
        const auto flow = static_cast<double>(gy[i]);
        gx[i] = T(row.inverse * (flow * scale[i] - row.g - normal * row.product));
        of_scale[i] += flow * normal;
        of_bias[i] += flow;
      }
    }
  });
  if (call.has_output(1)) store_reals(of_scale, call.output(1));
  if (call.has_output(2)) store_reals(of_bias, call.output(2));
}

std::vector<Var> decompose(DecomposeContext& context) {
  const Var &x = context.inputs[0], &scale = context.inputs[1], &gy = context.inputs[2];
  AG_CHECK_USER(x.shape().has_rank(), UnsupportedError, "[layer_normalization_grad] x: expected a known rank");
  std::vector<int64_t> rows, normalized;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    (axis < first_axis(context.attributes, x.rank()) ? rows : normalized).push_back(axis);
  }
  const NormalizedParts parts = normalized_parts(x, normalized, context.attributes.real("epsilon"));
  // Without rows before it the axis is the first one: nothing is added up.
  const auto row_sum = [&](const Var& value) { return rows.empty() ? value : reduce_sum(value, rows, false); };
  return {through_normalization(parts, gy * scale, normalized), row_sum(gy * parts.normal), row_sum(gy)};
}

OpCost cost(const CostContext& context) {
  constexpr double kOpsPerElement = 16;
  return {.flops = kOpsPerElement * static_cast<double>(*context.inputs[0].shape().num_elements()),
          .bytes = moved_bytes(context)};
}

OpSample sample(Random& random) {
  Dims dims = draw_dims(random, 1, 4);
  const auto rank = static_cast<int64_t>(dims.size());
  dims.back() += 1;  // of one element nothing but rounding errors is left
  const int64_t axis = draw(random, -rank, rank - 1);
  const Dims tail(dims.begin() + front_axis(axis, rank), dims.end());
  return {.inputs = {draw_tensor(random, DType::f32, dims), draw_tensor(random, DType::f32, tail),
                     draw_tensor(random, DType::f32, dims)},
          .attributes = {{"axis", axis}, {"epsilon", draw_one_of(random, {1e-2f, 1e-1f})}},
          .num_outputs = 3};
}

}  // namespace

std::vector<Var> layer_normalization_grad(Var x, Var scale, Var gy, int64_t axis, float epsilon) {
  return apply_all(layer_normalization_grad_def(), {x, scale, gy}, {{"axis", axis}, {"epsilon", epsilon}}, 3);
}

const OpDef& layer_normalization_grad_def() {
  static const OpDef def{
      .name = "layer_normalization_grad",
      .doc =
          "Gradients of layer_normalization: gx = (g - mean(g) - normal * mean(g * normal)) / sqrt(var + epsilon) "
          "with g = gy * scale, and those of scale and bias.",
      .inputs = {{"x", "T", "Any shape of rank 1 or more."},
                 {"scale", "T", "The dims of x from axis on."},
                 {"gy", "T", "Shape of x: what flows into the output."}},
      .outputs = {{"gx", "T", "Shape of x."}, {"gscale", "T", "Shape of scale."}, {"gbias", "T", "Shape of scale."}},
      .types = {{"T", dtypes::kFloat}},
      .attributes = {{"axis", AttributeType::integer, "First dim to normalise over.", int64_t{-1}},
                     {"epsilon", AttributeType::real, "Added to the variance.", 1e-5f}},
      .infer = infer,
      .reference = reference,
      .decompose = decompose,
      .cost = cost,
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
