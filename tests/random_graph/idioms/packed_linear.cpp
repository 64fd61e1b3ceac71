// Linear layers whose weights alone are quantized, as language models are shipped: integers of 2 to 8 bits behind a
// dequantization, with a scale for the tensor, for each output or for each block of inputs.
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

enum class Scales { of_tensor, of_outputs, of_blocks };

// [out, in] or [in, out], of the dtype of the floats around it.
Var dequantized(IdiomGraph& g, DType floats, int64_t in, int64_t out, bool outputs_first) {
  const DType dtype =
      g.one_of({DType::i4, DType::u4, DType::i4, DType::u4, DType::i8, DType::u8, DType::i2, DType::u2});
  const int64_t bits = dtype == DType::i8 || dtype == DType::u8 ? 8 : dtype == DType::i2 || dtype == DType::u2 ? 2 : 4;
  const bool is_signed = dtype == DType::i8 || dtype == DType::i4 || dtype == DType::i2;
  const double range = static_cast<double>(int64_t{1} << bits), low = is_signed ? -range / 2 : 0;
  const auto scales = g.one_of({Scales::of_tensor, Scales::of_outputs, Scales::of_blocks, Scales::of_blocks});
  const int64_t block = scales == Scales::of_blocks ? g.one_of<int64_t>({8, 16, 32, 64}) : 0;
  const auto turned = [&](int64_t k, int64_t n) { return outputs_first ? Dims{n, k} : Dims{k, n}; };
  const Dims dims = scales == Scales::of_blocks    ? turned((in + block - 1) / block, out)
                    : scales == Scales::of_outputs ? Dims{out}
                                                   : Dims{};
  const auto numbers = [&](const Dims& of) {
    return g.constant(draw_tensor(g.random(), dtype, of, low, low + range - 1));
  };
  const Var q = numbers(turned(in, out));
  const Var scale = g.constant(draw_tensor(g.random(), floats, dims, 0.2 / range, 1 / range));
  const Var zero = g.chance(50) ? numbers(dims) : Var();
  const int64_t inner = outputs_first ? 1 : 0;
  return apply(dequantize_linear_def(), {q, scale, zero},
               {{"axis", block > 0 ? inner : 1 - inner}, {"block_size", block}});
}

Var packed_product(IdiomGraph& g, Var x) {
  const int64_t in = x.dim(-1), out = g.channels();
  if (x.rank() == 2 && g.chance(40)) {
    const bool outputs_first = g.chance(60);
    const Var bias = g.chance(60) ? g.constant(draw_tensor(g.random(), x.dtype(), {out}, -1, 1)) : Var();
    return gemm(x, dequantized(g, x.dtype(), in, out, outputs_first), bias, {.transpose_b = outputs_first});
  }
  const bool outputs_first = g.chance(50);
  const Var w = dequantized(g, x.dtype(), in, out, outputs_first);
  const Var y = matmul(x, outputs_first ? transpose(w, {1, 0}) : w);
  return g.chance(40) ? add(y, g.constant(draw_tensor(g.random(), x.dtype(), {out}, -1, 1))) : y;
}

}  // namespace

void add_packed_linear(IdiomGraph& g) {
  Var x = g.chance(50) ? g.row() : g.sequence();
  // Scales have at most 32 bits.
  if (x.dtype() == DType::f64) x = cast(x, DType::f32);
  for (int64_t layers = g.between(1, 2); layers > 0; --layers) {
    x = packed_product(g, x);
    for (int64_t ops = g.between(0, 2); ops > 0; --ops) x = add_activation(g, x);
  }
  g.leave(x.dtype() == g.dtype() ? x : cast(x, g.dtype()));
}

}  // namespace autograph
