// Linear layers: a product with constant or computed right side in its spellings, and one to six ops behind it.
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

Var linear_of_rows(IdiomGraph& g, Var x, int64_t out) {
  const int64_t in = x.dim(-1);
  GemmOptions options;
  options.transpose_b = g.chance(60);
  if (g.chance(15)) options.alpha = static_cast<float>(g.real(0.3, 2));
  if (g.chance(15)) options.beta = static_cast<float>(g.real(0.3, 2));
  Var bias;
  if (g.chance(75)) bias = g.chance(80) ? g.weight({out}) : g.weight({1, g.chance(50) ? out : 1});
  return gemm(x, g.weight(options.transpose_b ? Dims{out, in} : Dims{in, out}), bias, options);
}

Var linear_of_sequence(IdiomGraph& g, Var x, int64_t out) {
  const int64_t in = x.dim(-1);
  Var y;
  if (g.chance(15)) {  // as keras flattens it
    const Var flat = reshape(x, std::vector<int64_t>{-1, in});
    y = matmul(flat, g.weight({in, out}));
    y = x.type().is_static() ? reshape(y, std::vector<int64_t>{x.dim(0), x.dim(1), out}) : unsqueeze(y, {0});
  } else {
    Var w = g.chance(15) ? transpose(g.weight({out, in}), {1, 0}) : g.weight({in, out});
    if (g.chance(10)) w = unsqueeze(w, {0});
    y = matmul(x, w);
  }
  if (g.chance(70)) y = g.chance(50) ? add(y, g.weight({out})) : add(g.weight({out}), y);
  return y;
}

}  // namespace

void add_matmul_epilogue(IdiomGraph& g) {
  const int64_t out = g.channels();
  Var y;
  if (g.chance(45)) {
    const Var x = g.row();
    y = g.chance(70) ? linear_of_rows(g, x, out) : add(matmul(x, g.weight({x.dim(-1), out})), g.weight({out}));
  } else if (g.chance(15)) {
    const Var x = g.sequence();
    y = matmul(x, transpose(x, {0, 2, 1}));  // no weights at all
    if (!y.shape()[2].is_known()) {
      g.leave(matmul(y, x));
      return;
    }
  } else {
    y = linear_of_sequence(g, g.sequence(), out);
  }
  const int64_t ops = g.between(1, 6);
  for (int64_t k = 0; k < ops; ++k) {
    if (g.chance(8)) g.output(y);
    y = add_epilogue_op(g, y, -1);
  }
  g.leave(y);
}

}  // namespace autograph
