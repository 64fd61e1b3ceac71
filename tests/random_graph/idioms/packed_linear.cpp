// Linear layers whose weights alone are quantized, as language models are shipped: integers of 2 to 8 bits behind a
// dequantization, with a scale for the tensor, for each output or for each block of inputs.
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "random_graph/idioms/idioms.h"
#include "support/graphs/quantized_graphs.h"

namespace autograph {
namespace {

// [out, in] or [in, out], of the dtype of the floats around it.
Var dequantized(IdiomGraph& g, DType floats, int64_t in, int64_t out, bool outputs_first) {
  const NarrowWeights form{
      .dtype = g.one_of({DType::i4, DType::u4, DType::i4, DType::u4, DType::i8, DType::u8, DType::i2, DType::u2}),
      .outputs_first = outputs_first,
      .block = g.one_of<int64_t>({NarrowWeights::kOneScale, NarrowWeights::kOneScale, 0, 0, 8, 16, 32, 64}),
      .has_zeros = g.chance(50),
      .floats = floats};
  return narrow_weights(g.graph(), g.random(), form, in, out);
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
