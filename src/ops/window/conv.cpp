// conv: y[n, m, o] = b[m] + sum over c and k of w[m, c, k] * x[n, c, o * stride - pad + k * dilation], where c runs
// over the input channels of m's group and taps outside the input count as 0. Any number of spatial axes from one.
#include "autograph/op_def.h"
#include "autograph/ops/window.h"
#include "ops/defs.h"
#include "ops/window/conv_gradients.h"
#include "ops/window/conv_loops.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

void infer(InferContext& context) { context.set_output(0, context.dtype(0), infer_conv_shape(context, 0, 1, 2)); }

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const TensorView w = call.input(1);
  const ConvSizes sizes = conv_sizes(call.attributes, x, w);
  dispatch<FloatTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* in = x.data<T>();
    const T* weights = w.data<T>();
    const T* bias = call.input(2).is_present() ? call.input(2).data<T>() : nullptr;
    T* out = call.output(0).mutable_data<T>();
    convolve<double>(
        sizes,
        [&](int64_t xi, int64_t wi, int64_t) { return static_cast<double>(in[xi]) * static_cast<double>(weights[wi]); },
        [&](int64_t i, int64_t m, double sum) { out[i] = T(bias ? sum + static_cast<double>(bias[m]) : sum); });
  });
}

OpCost cost(const CostContext& context) { return conv_cost(context, 0, 1); }

void vjp(VjpContext& c) {
  const Var x = c.in(0), w = c.in(1);
  if (!x.shape().has_rank() || !w.shape().is_static()) {
    c.unsupported("its rule needs a known rank and weights of known extents, got " + to_string(x.shape()) + " and " +
                  to_string(w.shape()));
  }
  const Dims extents = w.shape().static_dims();
  const WindowSpec spec = window_spec(c.attributes(), Dims(extents.begin() + 2, extents.end()));
  const int64_t group = c.attributes().integer("group");
  if (c.wants(0)) c.set(0, spread_by_weights(c.gy(0), w, spec, x, group));
  if (c.wants(1)) c.set(1, correlate(x, c.gy(0), spec, group));
  if (c.wants(2)) c.set(2, sum_of_channels(c.gy(0)));
}

}  // namespace

Attributes conv_options_attributes(const ConvOptions& options) {
  Attributes attributes{{"group", options.group}, {"auto_pad", options.auto_pad}};
  if (!options.strides.empty()) attributes.set("strides", options.strides);
  if (!options.pads.empty()) attributes.set("pads", options.pads);
  if (!options.dilations.empty()) attributes.set("dilations", options.dilations);
  return attributes;
}

Var conv(Var x, Var w, Var b, const ConvOptions& options) {
  return apply(conv_def(), {x, w, b}, conv_options_attributes(options));
}

const OpDef& conv_def() {
  static const OpDef def{
      .name = "conv",
      .doc = "Convolution: y[n,m,o] = b[m] + sum of w[m,c,k] * x[n,c,o*stride - pad + k*dilation].",
      .inputs = {{"x", "T", "[N, C, spatial...]."},
                 {"w", "T", "[M, C / group, kernel...]."},
                 {"b", "T", "[M], added to each output channel.", Arity::optional}},
      .outputs = {{"y", "T", "[N, M, spatial...]."}},
      .types = {{"T", dtypes::kFloat}},
      .attributes = conv_attributes(),
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .traits = {.anchor = true},
      .cost = cost,
      .onnx = {{"Conv"}},
      .sample = sample_conv,
  };
  return def;
}

}  // namespace autograph
