#include "support/graphs/quantized_graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/quantize.h"
#include "autograph/ops/window.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/compare.h"

namespace autograph {

Var draw_scales(Graph& graph, Random& random, double low, double high, Dims dims) {
  return constant(graph, draw_tensor(random, DType::f32, std::move(dims), low, high));
}

Var quantized_input(Graph& graph, Random& random, const Dims& dims, const std::string& name) {
  const DType dtype = draw_one_of(random, {DType::u8, DType::i8});
  const Var q = input(graph, dtype, Shape::of(dims), name);
  const bool symmetric = draw_bool(random);
  const Tensor zero = draw_tensor(random, dtype, {}, symmetric ? 0 : 1, symmetric ? 0 : 100);
  return dequantize_linear(q, draw_scales(graph, random, 0.01, 0.05), constant(graph, zero));
}

Var quantized_weights(Graph& graph, Random& random, const Dims& dims, int64_t axis) {
  const bool per_channel = draw_bool(random);
  const Dims scales = per_channel ? Dims{dims[static_cast<size_t>(axis)]} : Dims{};
  if (draw(random, 0, 3) == 0) {
    const Var q = constant(graph, draw_tensor(random, DType::u8, dims, 0, 255));
    const Tensor zero = draw_tensor(random, DType::u8, scales, 128, 128);
    return dequantize_linear(q, draw_scales(graph, random, 0.005, 0.02, scales), constant(graph, zero), axis);
  }
  const Var q = constant(graph, draw_tensor(random, DType::i8, dims, -127, 127));
  const Tensor zero = draw_tensor(random, DType::i8, scales, 0, 0);
  return dequantize_linear(q, draw_scales(graph, random, 0.005, 0.02, scales), constant(graph, zero), axis);
}

Var narrow_weights(Graph& graph, Random& random, const NarrowWeights& form, int64_t inner, int64_t outputs) {
  const auto is_one_of = [&](DType a, DType b) { return form.dtype == a || form.dtype == b; };
  const double range = is_one_of(DType::i8, DType::u8) ? 256 : is_one_of(DType::i2, DType::u2) ? 4 : 16;
  const bool is_signed = is_one_of(DType::i8, DType::i4) || form.dtype == DType::i2;
  const double low = is_signed ? -range / 2 : 0;
  const auto turned = [&](int64_t k, int64_t n) { return form.outputs_first ? Dims{n, k} : Dims{k, n}; };
  const Dims scales = form.block > 0    ? turned((inner + form.block - 1) / form.block, outputs)
                      : form.block == 0 ? Dims{outputs}
                                        : Dims{};
  const auto numbers = [&](const Dims& dims) {
    return constant(graph, draw_tensor(random, form.dtype, dims, low, low + range - 1));
  };
  const Var q = numbers(turned(inner, outputs));
  const Var scale = constant(graph, draw_tensor(random, form.floats, scales, 0.2 / range, 1 / range));
  const Var zero = form.has_zeros ? numbers(scales) : Var();
  const int64_t inner_axis = form.outputs_first ? 1 : 0;
  return apply(
      dequantize_linear_def(), {q, scale, zero},
      {{"axis", form.block > 0 ? inner_axis : 1 - inner_axis}, {"block_size", std::max(form.block, int64_t{0})}});
}

namespace {

// What follows a product: perhaps a residual, an activation, and nearly always a quantization.
Var finish(Graph& graph, Random& random, Var y, const Dims& dims) {
  const int64_t kind = draw(random, 0, 9);
  const bool is_quantized = kind > 0;
  if (is_quantized && draw_bool(random)) y = add(y, quantized_input(graph, random, dims, "r"));
  const int64_t activation = draw(random, 0, 2);
  if (activation == 1) y = relu(y);
  if (activation == 2) y = clip(y, constant(graph, Tensor::scalar(-0.5F)), constant(graph, Tensor::scalar(6.0F)));
  if (!is_quantized) return y;
  const DType dtype = draw_one_of(random, {DType::u8, DType::i8});
  const Tensor zero = draw_tensor(random, dtype, {}, 0, 100);
  return quantize_linear(y, draw_scales(graph, random, 0.02, 0.2), constant(graph, zero));
}

}  // namespace

Graph random_quantized_conv(Random& random) {
  Graph graph;
  const int64_t spatial = draw(random, 1, 3);
  const int64_t group = draw_one_of<int64_t>(random, {1, 1, 2, 4});
  const int64_t in = group * draw_one_of<int64_t>(random, {1, 3, 8, 16});
  const int64_t out = group * draw_one_of<int64_t>(random, {2, 5, 16});
  Dims x{draw(random, 1, 2), in};
  Dims w{out, in / group};
  ConvOptions options{.group = group};
  for (int64_t a = 0; a < spatial; ++a) {
    x.push_back(draw(random, 5, 9));
    w.push_back(draw(random, 1, 3));
    options.strides.push_back(draw(random, 1, 2));
    options.dilations.push_back(draw(random, 1, 2));
  }
  for (int64_t a = 0; a < 2 * spatial; ++a) options.pads.push_back(draw(random, 0, 2));
  const Var data = quantized_input(graph, random, x, "x");
  const Var weights = quantized_weights(graph, random, w, 0);
  const Var bias = draw_bool(random) ? constant(graph, draw_tensor(random, DType::f32, {out}, -2, 2)) : Var();
  const Var y = conv(data, weights, bias, options);
  const Var last = finish(graph, random, y, y.type().shape().static_dims());
  graph.add_output(last.id(), "y");
  return graph;
}

Graph random_quantized_product(Random& random) {
  Graph graph;
  const int64_t k = draw(random, 1, 70);
  const int64_t n = draw(random, 1, 40);
  const bool is_gemm = draw_bool(random);
  const bool transposed = is_gemm && draw_bool(random);
  Dims x{draw(random, 1, 20), k};
  if (!is_gemm && draw_bool(random)) x.insert(x.begin(), draw(random, 1, 3));
  const Var data = quantized_input(graph, random, x, "x");
  const Var weights = quantized_weights(graph, random, transposed ? Dims{n, k} : Dims{k, n}, transposed ? 0 : 1);
  const Var bias = draw_bool(random) ? constant(graph, draw_tensor(random, DType::f32, {n}, -2, 2)) : Var();
  Var y = is_gemm ? gemm(data, weights, bias, {.transpose_b = transposed}) : matmul(data, weights);
  if (!is_gemm && bias.is_valid()) y = add(y, bias);
  const Var last = finish(graph, random, y, y.type().shape().static_dims());
  graph.add_output(last.id(), "y");
  return graph;
}

Graph random_quantized_stacks(Random& random) {
  Graph graph;
  const int64_t rows = draw(random, 1, 20), depth = draw(random, 1, 70), columns = draw(random, 1, 40);
  Dims a{rows, depth}, b{depth, columns};
  switch (draw(random, 0, 4)) {
    case 0: a.insert(a.begin(), 3), b.insert(b.begin(), 3); break;
    case 1: a.insert(a.begin(), {2, 1}), b.insert(b.begin(), 3); break;
    case 2: b.insert(b.begin(), 2); break;
    case 3: a = {depth}; break;
    default: break;
  }
  const Var y = matmul(quantized_input(graph, random, a, "a"), quantized_input(graph, random, b, "b"));
  graph.add_output(finish(graph, random, y, y.type().shape().static_dims()).id(), "y");
  return graph;
}

std::vector<Datum> random_bytes(const Graph& graph, Random& random) {
  std::vector<Datum> inputs;
  for (const ValueId v : graph.inputs()) {
    const Type& type = graph.type(v);
    const Dims dims = type.shape().static_dims();
    if (type.dtype() == DType::f32) {
      inputs.emplace_back(draw_tensor(random, DType::f32, dims, -1, 1));
      continue;
    }
    const double lowest = type.dtype() == DType::i8 ? -128 : 0;
    inputs.emplace_back(draw_tensor(random, type.dtype(), dims, lowest, lowest + 255));
  }
  return inputs;
}

std::string more_than_a_step(const Tensor& actual, const Tensor& expected) {
  // Rounded to float here and there, so that rows of the definition and of the kernel differ in the last digits.
  constexpr FloatTolerance kFloats{1e-4, 1e-3};
  if (actual.dtype() == DType::f32) return difference(Datum(actual), Datum(expected), kFloats);
  if (actual.type() != expected.type()) return "another type";
  const std::vector<double> a = actual.to_f64();
  const std::vector<double> e = expected.to_f64();
  size_t different = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::fabs(a[i] - e[i]) > 1) return fmt::format("element {}: {} instead of {}", i, a[i], e[i]);
    if (a[i] != e[i]) ++different;
  }
  if (different <= 1 + a.size() / 100) return "";
  return fmt::format("{} of {} elements differ by a step", different, a.size());
}

}  // namespace autograph
