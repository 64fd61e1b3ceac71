// causal_conv_with_state: a depthwise convolution along the last axis that looks only backwards, with the last k - 1
// positions carried from call to call. With s = past_state (default zeros) followed by x along the last axis,
//   y[n, c, t] = f(b[c] + sum over j of w[c, 0, j] * s[n, c, t + j]),   present_state = the last k - 1 positions of s,
// where f is the identity or silu(v) = v / (1 + exp(-v)).
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

// Does a known extent disagree with another known one?
bool differ(const Dim& a, const Dim& b) { return a.is_known() && b.is_known() && a.value() != b.value(); }

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  const Shape& w = context.shape(1);
  context.require_rank(0, 3);
  context.require_rank(1, 3);
  context.require_rank(2, 1);
  context.require_rank(3, 3);
  if (w.has_rank()) {
    const bool one = !differ(w[1], Dim(1)) && w[2].value_or(1) >= 1;
    context.require<ShapeError>(one, "weight", "expected [C, 1, k] with k of 1 or more, got " + to_string(w));
  }
  const Dim channels = x.has_rank() ? x[1] : w.has_rank() ? w[0] : Dim::unknown();
  const Dim kept = w.has_rank() && w[2].is_known() ? Dim(w[2].value() - 1) : Dim::unknown();
  const Dim batch = x.has_rank() ? x[0] : Dim::unknown();
  const bool channels_fit =
      (!w.has_rank() || !differ(w[0], channels)) &&
      (!context.has_input(2) || !context.shape(2).has_rank() || !differ(context.shape(2)[0], channels));
  context.require<ShapeError>(
      channels_fit, "channels",
      "expected weight and bias to have the channels of input " + to_string(x) + ", got weight " + to_string(w));
  if (context.has_input(3) && context.shape(3).has_rank()) {
    const Shape& past = context.shape(3);
    context.require<ShapeError>(!differ(past[0], batch) && !differ(past[1], channels) && !differ(past[2], kept),
                                "past_state",
                                "expected " + to_string(Shape{batch, channels, kept}) + ", got " + to_string(past));
  }
  context.set_output(0, context.dtype(0), x.has_rank() ? x : Shape::of_rank(3));
  context.set_output(1, context.dtype(0), Shape{batch, channels, kept});
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const int64_t channels = x.dim(1);
  const int64_t length = x.dim(2);
  const int64_t taps = call.input(1).dim(2);
  const int64_t kept = taps - 1;
  const bool silu = call.attributes.text("activation") != "none";
  dispatch<FloatTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* in = x.data<T>();
    const T* weight = call.input(1).data<T>();
    const T* bias = call.input(2).is_present() ? call.input(2).data<T>() : nullptr;
    const T* past = call.input(3).is_present() ? call.input(3).data<T>() : nullptr;
    // Position `i` of past_state followed by x.
    const auto sequence = [&](int64_t row, int64_t i) {
      if (i >= kept) return in[row * length + i - kept];
      return past ? past[row * kept + i] : T(0.0F);
    };
    T* out = call.output(0).mutable_data<T>();
    for (int64_t row = 0; row < x.dim(0) * channels; ++row) {
      const int64_t c = row % channels;
      for (int64_t t = 0; t < length; ++t) {
        double sum = bias ? static_cast<double>(bias[c]) : 0.0;
        for (int64_t j = 0; j < taps; ++j) {
          sum += static_cast<double>(weight[c * taps + j]) * static_cast<double>(sequence(row, t + j));
        }
        out[row * length + t] = T(silu ? sum / (1 + std::exp(-sum)) : sum);
      }
      if (!call.has_output(1)) continue;
      T* present = call.output(1).mutable_data<T>();
      for (int64_t i = 0; i < kept; ++i) present[row * kept + i] = sequence(row, length + i);
    }
  });
}

// With z = w * s + b: silu'(z) = f + f(-z) silu(z) for f the sigmoid. Each tap sees s at another place, so that its
// weight has the sum of products there, and s a transposed convolution.
void vjp(VjpContext& c) {
  const Var x = c.in(0), w = c.in(1);
  if (!x.type().is_static() || !w.type().is_static()) c.unsupported("its rule needs to know all extents");
  const int64_t channels = x.dim(1), length = x.dim(2), taps = w.dim(2), kept = taps - 1;
  const Var past = c.has_input(3) ? c.in(3) : filled_like(slice(pad(x, {0, 0, kept, 0, 0, 0}), {0}, {kept}, {2}), 0);
  const Var s = concat({past, x}, 2);
  ConvOptions options;
  options.group = channels;
  Var gz = c.gy(0);
  if (c.attributes().text("activation") != "none") {
    const Var z = conv(s, w, c.has_input(2) ? c.in(2) : Var(), options);
    const Var f = sigmoid(z);
    gz = gz * f * (1 + z * (1 - f));
  }
  if (c.wants(0) || c.wants(3)) {
    const Var gs = conv_transpose(gz, w, {}, options) + pad(c.gy(1), {0, 0, length, 0, 0, 0});
    const std::vector<Var> parts = split(gs, {kept, length}, 2);
    if (c.wants(0)) c.set(0, parts[1]);
    if (c.wants(3)) c.set(3, parts[0]);
  }
  if (c.wants(1)) {
    std::vector<Var> weights;
    for (int64_t tap = 0; tap < taps; ++tap) {
      weights.push_back(reduce_sum(gz * slice(s, {tap}, {tap + length}, {2}), {0, 2}, false));
    }
    for (Var& weight : weights) weight = reshape(weight, {channels, 1, 1});
    c.set(1, concat(weights, 2));
  }
  if (c.wants(2)) c.set(2, reduce_sum(gz, {0, 2}, false));
}

OpSample sample(Random& random) {
  const Dims x = draw_dims(random, 3, 3);
  const int64_t taps = draw(random, 1, 4);
  OpSample sample{.inputs = {draw_tensor(random, DType::f32, x), draw_tensor(random, DType::f32, {x[1], 1, taps}),
                             Datum(), Datum()},
                  .attributes = {{"activation", draw_one_of<std::string>(random, {"none", "silu", "swish"})}}};
  if (draw_bool(random)) sample.inputs[2] = draw_tensor(random, DType::f32, {x[1]});
  if (draw_bool(random)) sample.inputs[3] = draw_tensor(random, DType::f32, {x[0], x[1], taps - 1});
  return sample;
}

}  // namespace

std::vector<Var> causal_conv_with_state(Var x, Var w, Var b, Var state, const std::string& activation) {
  return apply_all(causal_conv_with_state_def(), {x, w, b, state}, {{"activation", activation}}, 2);
}

const OpDef& causal_conv_with_state_def() {
  static const OpDef def{
      .name = "causal_conv_with_state",
      .doc = "Depthwise convolution over the past along the last axis, with the last k - 1 positions carried over.",
      .inputs = {{"input", "T", "[N, C, length]."},
                 {"weight", "T", "[C, 1, k]."},
                 {"bias", "T", "[C]; default 0.", Arity::optional},
                 {"past_state", "T", "[N, C, k - 1]; default 0.", Arity::optional}},
      .outputs = {{"output", "T", "[N, C, length]."}, {"present_state", "T", "[N, C, k - 1]."}},
      .types = {{"T", {DType::f32, DType::f16, DType::bf16}}},
      .attributes = {{"activation",
                      AttributeType::text,
                      "Applied to the output; silu and swish are the same.",
                      std::string("none"),
                      false,
                      {"none", "silu", "swish"}}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .onnx = {{.name = "CausalConvWithState", .since = 27}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
