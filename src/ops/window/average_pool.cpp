// average_pool: the mean of each window. The divisor counts the taps inside the input, or with count_include_pad those
// inside the padded input; taps beyond the end padding (ceil_mode) never count. A window without counted taps gives 0.
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/window.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/window/conv_gradients.h"
#include "ops/window/pool_loops.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

void infer(InferContext& context) { context.set_output(0, context.dtype(0), infer_pool_shape(context)); }

// Number of taps of the window at `at` inside the padded input.
double padded_taps(std::span<const WindowAxis> axes, std::span<const int64_t> at) {
  double count = 1;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    count *= static_cast<double>(axes[axis].taps_within(at[axis], axes[axis].pad_begin, axes[axis].pad_end).count);
  }
  return count;
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const auto axes = pool_windows(call.attributes, x);
  const bool include_pad = call.attributes.flag("count_include_pad");
  dispatch<FloatTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* in = x.data<T>();
    T* out = call.output(0).mutable_data<T>();
    for_each_pool(axes, x, [&](std::span<const int64_t> at, std::span<const int64_t> taps, int64_t base, int64_t o) {
      double sum = 0;
      for (const int64_t tap : taps) sum += static_cast<double>(in[base + tap]);
      const double count = include_pad ? padded_taps(axes, at) : static_cast<double>(taps.size());
      out[o] = T(count == 0 ? 0.0 : sum / count);
    });
  });
}

OpSample sample(Random& random) {
  OpSample result = sample_pool(random);
  result.attributes.set("count_include_pad", draw(random, 0, 1));
  return result;
}

// 1 / number of taps of each window, [1, 1, out...].
Tensor inverse_counts(std::span<const WindowAxis> axes, bool includes_pads) {
  std::vector<double> inverse{1.0};
  Dims dims{1, 1};
  for (const WindowAxis& axis : axes) {
    const std::vector<float> counts = counted_taps(axis, includes_pads);
    std::vector<double> next;
    for (const double outer : inverse) {
      for (const float count : counts) next.push_back(count == 0 ? 0.0 : outer / static_cast<double>(count));
    }
    inverse = std::move(next);
    dims.push_back(axis.out);
  }
  return Tensor::of<double>(dims, inverse);
}

// What each window's elements are multiplied by in its mean, [1, 1, out...] or one number.
Var factors_of(VjpContext& c, const WindowSpec& spec) {
  const Var x = c.in(0);
  const bool includes_pads = c.attributes().flag("count_include_pad");
  const Shape spatial(std::vector<Dim>(x.shape().dims().begin() + 2, x.shape().dims().end()));
  if (spatial.is_static()) {
    const Tensor counts = inverse_counts(resolve_windows(spec, spatial.static_dims()), includes_pads);
    return cast(constant_like(x, counts), c.gy(0).dtype());
  }
  if (!includes_pads) return 1 / count_taps_inside(x, spec);
  const bool may_reach_beyond = spec.ceil_mode && (spec.auto_pad == "NOTSET" || spec.auto_pad == "VALID");
  if (may_reach_beyond) return 1 / count_taps_padded(x, spec, c.gy(0));
  double taps = 1;
  for (const int64_t extent : spec.kernel) taps *= static_cast<double>(extent);
  return scalar_like(x, 1 / taps);
}

void vjp(VjpContext& c) {
  const WindowSpec spec = pool_spec(c);
  c.set(0, sum_of_windows(c.gy(0) * factors_of(c, spec), spec, c.in(0)));
}

}  // namespace

Var average_pool(Var x, const PoolOptions& options) {
  Attributes attributes = pool_options_attributes(options);
  attributes.set("count_include_pad", int64_t{options.count_include_pad ? 1 : 0});
  return apply(average_pool_def(), {x}, attributes);
}

const OpDef& average_pool_def() {
  static const OpDef def{
      .name = "average_pool",
      .doc = "Mean of each window.",
      .inputs = {{"x", "T", "[N, C, spatial...]."}},
      .outputs = {{"y", "T", "[N, C, spatial...]."}},
      .types = {{"T", dtypes::kFloat}},
      .attributes = pool_attributes(
          {{"count_include_pad", AttributeType::integer, "1: padding counts in the divisor.", int64_t{0}}}),
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .cost = pool_cost,
      .onnx = {{.name = "AveragePool", .export_since = 19}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
