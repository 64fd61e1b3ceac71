// Quantized networks: values between QuantizeLinear and DequantizeLinear, QLinear ops, integer products with scales
// behind them, and scales taken from the data.
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/quantize.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "random_graph/idioms/contrib_call.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

struct Grid {
  Var scale, zero;
};

Var scalar_of(IdiomGraph& g, DType dtype, int64_t value) {
  return dtype == DType::u8 ? g.constant(Tensor::scalar(static_cast<uint8_t>(value)))
                            : g.constant(Tensor::scalar(static_cast<int8_t>(value)));
}

// For activations: one scale; u8 around 128 or from 0 on, i8 around 0 or anywhere.
Grid activation_grid(IdiomGraph& g) {
  const DType dtype = g.one_of({DType::u8, DType::i8});
  const int64_t zero = dtype == DType::u8 ? g.one_of<int64_t>({0, 128, 113}) : g.one_of<int64_t>({0, 0, -17});
  return {g.constant(Tensor::scalar(static_cast<float>(g.real(0.01, 0.1)))), scalar_of(g, dtype, zero)};
}

Var there_and_back(IdiomGraph& g, Var x) {
  const Grid grid = activation_grid(g);
  return dequantize_linear(quantize_linear(x, grid.scale, grid.zero), grid.scale, grid.zero);
}

// Weights as bytes behind a dequantization, with one scale or one for each output channel.
Var dequantized_weights(IdiomGraph& g, Dims dims, int64_t axis) {
  const DType dtype = g.chance(85) ? DType::i8 : DType::u8;
  const int64_t count = dims[static_cast<size_t>(axis)];
  const bool is_per_channel = g.chance(60);
  const Dims scales = is_per_channel ? Dims{count} : Dims{};
  const Var w =
      g.constant(draw_tensor(g.random(), dtype, dims, dtype == DType::i8 ? -127 : 0, dtype == DType::i8 ? 127 : 255));
  const Var scale = g.constant(draw_tensor(g.random(), DType::f32, scales, 0.001, 0.01));
  const double high = g.chance(70) ? 0 : 9;
  const Var zero =
      g.constant(draw_tensor(g.random(), dtype, scales, dtype == DType::u8 ? 120 : 0, dtype == DType::u8 ? 128 : high));
  return dequantize_linear(w, scale, zero, axis);
}

Var bias_of(IdiomGraph& g, int64_t count) {
  if (g.chance(50)) return g.constant(draw_tensor(g.random(), DType::f32, {count}, -0.5, 0.5));
  const Var bytes = g.constant(draw_tensor(g.random(), DType::i32, {count}, -300, 300));
  return dequantize_linear(bytes, g.constant(Tensor::scalar(0.002F)), Var());
}

Var quantized_conv(IdiomGraph& g, Var x) {
  const int64_t in = x.dim(1);
  const bool is_depthwise = g.chance(25);
  const int64_t out = is_depthwise ? in : g.channels(), size = g.one_of<int64_t>({1, 3});
  const int64_t pad = size / 2;
  const Var w = dequantized_weights(g, {out, is_depthwise ? 1 : in, size, size}, 0);
  Var y = conv(there_and_back(g, x), w, g.chance(70) ? bias_of(g, out) : Var(),
               {.pads = {pad, pad, pad, pad}, .group = is_depthwise ? in : 1});
  if (g.chance(40)) y = relu(y);
  if (g.chance(20)) y = clip(y, scalar_like(y, 0), scalar_like(y, 6));
  return y;
}

Var quantized_product(IdiomGraph& g, Var x) {
  const int64_t in = x.dim(-1), out = g.channels();
  Var y = matmul(there_and_back(g, x), dequantized_weights(g, {in, out}, 1));
  if (g.chance(60)) y = add(y, g.constant(draw_tensor(g.random(), DType::f32, {out}, -1, 1)));
  return g.chance(40) ? relu(y) : y;
}

// What stands between quantizations without products: sums, pools, concats, moves.
Var quantized_move(IdiomGraph& g, Var x) {
  const Var q = there_and_back(g, x);
  Var y;
  switch (g.between(0, 5)) {
    case 0: y = add(q, there_and_back(g, mul(x, g.number(x, 0.7)))); break;
    case 1: y = concat({q, there_and_back(g, relu(x))}, 1); break;
    case 2: y = q.rank() == 4 ? max_pool(q, {.kernel = {3, 3}, .pads = {1, 1, 1, 1}}) : relu(q); break;
    case 3: y = q.rank() == 4 ? global_average_pool(q) : neg(q); break;
    case 4: y = mul(q, there_and_back(g, sigmoid(x))); break;
    default: y = add_activation(g, q); break;
  }
  return there_and_back(g, y);
}

// MatMulInteger or ConvInteger with a scale taken from the data, as dynamic quantization writes it.
Var dynamic_product(IdiomGraph& g, Var x) {
  // A range of -1 to 1, as a tanh leaves it, has its zero point in the middle between two numbers: not here.
  const Var shifted = add(x, g.number(x, 0.3));
  const auto q = apply_all(get_op("dynamic_quantize_linear"), {shifted}, {}, 3);
  const bool is_conv = x.rank() == 4;
  const int64_t in = is_conv ? x.dim(1) : x.dim(-1), out = g.channels();
  const Dims dims = is_conv ? Dims{out, in, 1, 1} : Dims{in, out};
  const DType dtype = g.one_of({DType::i8, DType::u8});
  const Var w = g.constant(draw_tensor(g.random(), dtype, dims, dtype == DType::i8 ? -127 : 0, 127));
  const Var zero = scalar_of(g, dtype, dtype == DType::i8 ? 0 : 64);
  const Var sums = apply(get_op(is_conv ? "conv_integer" : "matmul_integer"), {q[0], w, q[2], zero});
  const Var scale = mul(q[1], g.constant(Tensor::scalar(0.01F)));
  const Var y = mul(cast(sums, DType::f32), scale);
  if (g.chance(40)) return y;
  return add(y, g.constant(draw_tensor(g.random(), DType::f32, is_conv ? Dims{out, 1, 1} : Dims{out}, -1, 1)));
}

Var qlinear_op(IdiomGraph& g, Var x) {
  const Grid from = activation_grid(g), to = activation_grid(g);
  const Var q = quantize_linear(x, from.scale, from.zero);
  const bool is_conv = x.rank() == 4;
  const int64_t in = is_conv ? x.dim(1) : x.dim(-1), out = g.channels();
  const Var w =
      g.constant(draw_tensor(g.random(), DType::i8, is_conv ? Dims{out, in, 1, 1} : Dims{in, out}, -127, 127));
  std::vector<Var> inputs{q, from.scale, from.zero, w, g.constant(Tensor::scalar(0.01F)), scalar_of(g, DType::i8, 0)};
  inputs.push_back(to.scale);
  inputs.push_back(to.zero);
  if (is_conv && g.chance(60)) inputs.push_back(g.constant(draw_tensor(g.random(), DType::i32, {out}, -500, 500)));
  return dequantize_linear(autograph::apply(get_op(is_conv ? "qlinear_conv" : "qlinear_matmul"), inputs), to.scale,
                           to.zero);
}

}  // namespace

void add_quantized_chain(IdiomGraph& g) {
  // Behind values in half precision every step would jump somewhere.
  const bool is_half = g.dtype() == DType::f16;
  Var x = is_half ? g.input(DType::f32, {-1, g.channels(), -2, -3}) : in_f32(g.chance(70) ? g.image() : g.sequence());
  for (int64_t k = g.between(1, 3); k > 0; --k) {
    const int64_t kind = g.between(0, 9);
    if (kind < 4) x = x.rank() == 4 ? quantized_conv(g, x) : quantized_product(g, x);
    if (kind == 4 || kind == 5) x = quantized_move(g, x);
    if (kind == 6) x = dynamic_product(g, x);
    if (kind == 7) x = qlinear_op(g, x);
    if (kind > 7) x = there_and_back(g, x);
  }
  g.leave(g.dtype() == DType::f32 ? x : cast(x, g.dtype()));
}

}  // namespace autograph
