// Integers: tokens looked up in tables, masks made of comparisons, arithmetic that wraps, sorting and picking.
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

// Word, position and kind of token, as in BERT.
Var embedded(IdiomGraph& g) {
  const int64_t width = g.one_of<int64_t>({4, 6, 8, 12, 16});
  const DType dtype = g.one_of({DType::i64, DType::i32});
  const Var tokens = g.input(dtype, {-1, -2}, 0, 19);
  Var x = gather(g.weight({20, width}, -1, 1), tokens, 0);
  if (g.chance(50))
    x = add(x, gather(g.weight({2, width}, -1, 1),
                      where(greater(tokens, g.number(tokens, 7)), scalar_like(tokens, 1), scalar_like(tokens, 0)), 0));
  if (g.chance(50)) x = add(x, g.weight({1, 1, width}, -1, 1));
  return g.chance(60) ? layer_normalization(x, g.weight({width}, 0.5, 1.5), g.weight({width})) : x;
}

// A mask made of tokens, applied to a sequence.
Var masked_mean(IdiomGraph& g, Var x) {
  const Var tokens = g.input(DType::i64, {1, x.shape()[1].value_or(1)}, 0, 2);
  const Var mask = cast(greater(tokens, g.number(tokens, 0)), x.dtype());
  const Var weights = unsqueeze(mask, {2});
  const Var sum = reduce_sum(mul(x, weights), {1}, false);
  const Var count = reduce_sum(weights, {1}, false);
  return div(sum, max({count, scalar_like(count, 1e-3)}));
}

Var step(IdiomGraph& g, Var x) {
  const auto number = [&](int64_t low, int64_t high) { return g.number(x, static_cast<double>(g.between(low, high))); };
  const bool is_signed = dtypes::kSigned.contains(x.dtype());
  switch (g.between(0, 12)) {
    case 0: return add(x, number(0, 100));
    case 1: return mul(x, number(1, 100));
    case 2: return sub(x, number(0, 100));
    case 3: return div(x, number(1, 7));
    case 4: return mod(x, number(1, 7));
    case 5: return is_signed ? abs(x) : x;
    case 6: return is_signed ? relu(abs(mul(x, number(1, 64)))) : mul(x, x);
    case 7: return is_signed ? neg(neg(x)) : add(x, x);
    case 8: return clip(x, scalar_like(x, 2), scalar_like(x, 90));
    case 9: return max({x, number(0, 50)});
    case 10: return where(less(x, number(0, 60)), x, number(0, 50));
    case 11: return is_signed ? neg(x) : min({x, number(0, 50)});
    default: return div(mul(x, number(2, 9)), number(2, 9));
  }
}

Var wrapped(IdiomGraph& g) {
  const DType dtype = g.one_of({DType::i8, DType::u8, DType::i32, DType::i64, DType::i16});
  const bool is_unsigned = dtype == DType::u8;
  const double high = dtype == DType::i8 ? 127 : 255;
  Var x = g.input(dtype, {-1, -2, 6}, is_unsigned ? 0 : -high - (dtype == DType::i8 ? 1 : 0), high);
  for (int64_t k = g.between(1, 6); k > 0; --k) x = step(g, x);
  return x;
}

// The best of a row and what belongs to them.
Var picked(IdiomGraph& g, Var x) {
  const auto [values, indices] = top_k(x, 1, -1);
  if (g.chance(50)) g.output(indices);
  const Var best = arg_max(x, -1, g.chance(50));
  g.output(best);
  return add(x, values);
}

Var scattered(IdiomGraph& g, Var x) {
  const Var indices = g.constant(Tensor::of<int64_t>({1, 1}, {0}));
  const Var updates = mul(slice(x, {0}, {1}, {0}), g.number(x, 2));
  return scatter_nd(x, indices, updates, g.chance(50) ? "none" : "add");
}

}  // namespace

void add_integer_chain(IdiomGraph& g) {
  switch (g.between(0, 6)) {
    case 0:
    case 1: return g.leave(embedded(g));
    case 2:
    case 3: return g.leave(cast(wrapped(g), g.dtype()));
    case 4: return g.leave(picked(g, g.row()));
    case 5: return g.leave(scattered(g, g.row()));
    default: break;
  }
  const Var x = g.sequence();
  g.leave(x.shape()[1].is_known() ? masked_mean(g, x) : relu(x));
}

}  // namespace autograph
