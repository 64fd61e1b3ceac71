// batch_normalization_grad: what flows into x, scale and bias of batch_normalization with the statistics of its batch.
// With n the elements of a channel, normal = (x - mean) / sqrt(var + epsilon) and sums over a channel
//
//   gbias = sum(gy)   gscale = sum(gy * normal)   gx = scale / sqrt(var + epsilon) * (gy - (gbias + normal * gscale) /
//   n)
//
// The statistics are formed again, which one more look at x gives. Nothing to average gives NaN.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "graph/moved_bytes.h"
#include "ops/defs.h"
#include "ops/extents.h"
#include "ops/normalization/norm_gradients.h"
#include "ops/real_values.h"
#include "ops/sample.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  Dim channels = Dim::unknown();
  if (x.has_rank()) {
    context.require<ShapeError>(x.rank() >= 2, "input 'x'", "expected [batch, channels, ...], got " + to_string(x));
    channels = x[1];
    if (context.shape(2).has_rank()) {
      context.require_rank(2, x.rank());
      for (int64_t axis = 0; axis < x.rank(); ++axis) same_extent(context, x[axis], context.shape(2)[axis], "gy");
    }
  }
  require_vector(context, 1, channels, "channels");
  if (channels.is_unknown() && context.shape(1).has_rank()) channels = context.shape(1)[0];
  context.set_output(0, context.dtype(0), x);
  context.set_output(1, context.dtype(1), Shape{channels});
  context.set_output(2, context.dtype(1), Shape{channels});
}

// The elements of one channel, as a loop.
template <class Visit>
void for_channel(const TensorView& x, int64_t channel, const Visit& visit) {
  int64_t inner = 1;
  for (int64_t axis = 2; axis < x.rank(); ++axis) inner *= x.dim(axis);
  for (int64_t n = 0; n < x.dim(0); ++n) {
    const int64_t begin = (n * x.dim(1) + channel) * inner;
    for (int64_t i = begin; i < begin + inner; ++i) visit(i);
  }
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const std::vector<double> scale = real_values(call.input(1));
  const double epsilon = call.attributes.real("epsilon");
  const double count = static_cast<double>(x.num_elements()) / static_cast<double>(std::max<int64_t>(1, x.dim(1)));
  std::vector<double> of_scale, of_bias;
  dispatch<FloatTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* in = x.data<T>();
    const T* gy = call.input(2).data<T>();
    T* gx = call.output(0).mutable_data<T>();
    for (int64_t c = 0; c < x.dim(1); ++c) {
      const auto at = [](const T* from, int64_t i) { return static_cast<double>(from[i]); };
      double mean = 0, variance = 0, sum = 0, product = 0;
      for_channel(x, c, [&](int64_t i) { mean += at(in, i) / count; });
      for_channel(x, c, [&](int64_t i) { variance += (at(in, i) - mean) * (at(in, i) - mean) / count; });
      const double inverse = 1 / std::sqrt(variance + epsilon);
      for_channel(x, c, [&](int64_t i) {
        sum += at(gy, i);
        product += at(gy, i) * (at(in, i) - mean) * inverse;
      });
      const double factor = scale[static_cast<size_t>(c)] * inverse;
      for_channel(x, c, [&](int64_t i) {
        gx[i] = T(factor * (at(gy, i) - (sum + (at(in, i) - mean) * inverse * product) / count));
      });
      of_scale.push_back(product);
      of_bias.push_back(sum);
    }
  });
  if (call.has_output(1)) store_reals(of_scale, call.output(1));
  if (call.has_output(2)) store_reals(of_bias, call.output(2));
}

std::vector<Var> decompose(DecomposeContext& context) {
  const Var &x = context.inputs[0], &scale = context.inputs[1], &gy = context.inputs[2];
  AG_CHECK_USER(x.shape().has_rank(), UnsupportedError, "[batch_normalization_grad] x: expected a known rank");
  std::vector<int64_t> axes{0}, trailing;
  for (int64_t axis = 2; axis < x.rank(); ++axis) {
    axes.push_back(axis);
    trailing.push_back(axis - 1);
  }
  Var factor = cast(scale, x.dtype());
  if (!trailing.empty()) factor = unsqueeze(factor, trailing);
  const NormalizedParts parts = normalized_parts(x, axes, context.attributes.real("epsilon"));
  const auto channel_sum = [&](const Var& value) { return cast(reduce_sum(value, axes, false), scale.dtype()); };
  return {through_normalization(parts, gy * factor, axes), channel_sum(gy * parts.normal), channel_sum(gy)};
}

OpCost cost(const CostContext& context) {
  constexpr double kOpsPerElement = 12;
  return {.flops = kOpsPerElement * static_cast<double>(*context.inputs[0].shape().num_elements()),
          .bytes = moved_bytes(context)};
}

OpSample sample(Random& random) {
  Dims dims = draw_dims(random, 2, 4);
  dims[0] += 1;  // of one element in a channel nothing but rounding errors is left
  return {.inputs = {draw_tensor(random, DType::f32, dims), draw_tensor(random, DType::f32, {dims[1]}),
                     draw_tensor(random, DType::f32, dims)},
          .attributes = {{"epsilon", draw_one_of(random, {1e-2f, 1e-1f})}},
          .num_outputs = 3};
}

}  // namespace

std::vector<Var> batch_normalization_grad(Var x, Var scale, Var gy, float epsilon) {
  return apply_all(batch_normalization_grad_def(), {x, scale, gy}, {{"epsilon", epsilon}}, 3);
}

const OpDef& batch_normalization_grad_def() {
  static const OpDef def{
      .name = "batch_normalization_grad",
      .doc =
          "Gradients of batch_normalization with batch statistics: gx = scale / sqrt(var + epsilon) * (gy - mean(gy) "
          "- normal * mean(gy * normal)), and those of scale and bias.",
      .inputs = {{"x", "T", "[batch, channels, ...]."},
                 {"scale", "T1", "[channels]."},
                 {"gy", "T", "Shape of x: what flows into the output."}},
      .outputs = {{"gx", "T", "Shape of x."}, {"gscale", "T1", "[channels]."}, {"gbias", "T1", "[channels]."}},
      .types = {{"T", dtypes::kFloat}, {"T1", dtypes::kFloat}},
      .attributes = {{"epsilon", AttributeType::real, "Added to the variance.", 1e-5f}},
      .infer = infer,
      .reference = reference,
      .decompose = decompose,
      .cost = cost,
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
