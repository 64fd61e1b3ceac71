// Arithmetic on its own: pre- and postprocessing, decoded boxes, towers of elementwise ops with constants that meet.
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

// What training leaves behind: a dropout with its mask, a test for what is not 0.
Var with_leftovers(IdiomGraph& g, Var x) {
  // What one kernel rounds to 0 may be the least of numbers by another.
  const Var tested = dtypes::kFloat.contains(x.dtype()) ? round(x) : x;
  if (g.chance(50)) return where(cast(tested, DType::boolean), x, g.number(x, 0.25));
  const std::vector<Var> dropped = apply_all(get_op("dropout"), {x}, {}, 2);
  return g.chance(50) ? dropped[0] : mul(dropped[0], cast(dropped[1], x.dtype()));
}

Var tower(IdiomGraph& g, Var x) {
  const Var start = x;
  for (int64_t k = g.between(2, 8); k > 0; --k) {
    switch (g.between(0, 10)) {
      case 0: x = add(x, start); break;
      case 1: x = mul(x, sigmoid(start)); break;
      case 2: x = where(greater(x, start), x, g.number(x, 0.5)); break;
      case 3: x = mul(mul(x, g.number(x, g.real(0.5, 2))), g.number(x, g.real(0.5, 2))); break;
      case 4: x = div(div(x, g.number(x, g.real(0.5, 2))), g.number(x, g.real(0.5, 2))); break;
      case 5: x = sub(g.number(x, 1), x); break;
      case 6: x = with_leftovers(g, x); break;
      default: x = add_epilogue_op(g, x, x.rank() == 4 ? 1 : -1); break;
    }
    if (g.chance(10)) g.leave(x);
  }
  return x;
}

// Pixels to what a network takes: mean and deviation of each channel.
Var preprocessed(IdiomGraph& g) {
  const Var pixels = g.input(g.chance(50) ? DType::u8 : DType::f32, {-1, -2, -3, 3}, 0, 255);
  const Var x = cast(transpose(pixels, {0, 3, 1, 2}), g.dtype());
  const Var unit = g.chance(50) ? div(x, g.number(x, 255)) : mul(x, g.number(x, 1.0 / 255));
  return div(sub(unit, g.weight({3, 1, 1}, 0.4, 0.5)), g.weight({1, 3, 1, 1}, 0.2, 0.3));
}

// Boxes as YOLO decodes them.
Var decoded(IdiomGraph& g, Var x) {
  const int64_t width = x.dim(-1);
  if (width < 4) return sigmoid(x);
  const std::vector<Var> parts = split(sigmoid(x), {2, 2, width - 4}, 2);
  const Var centre = mul(add(mul(parts[0], g.number(x, 2)), g.number(x, -0.5)), g.number(x, 8));
  const Var extent = mul(pow(mul(parts[1], g.number(x, 2)), g.number(x, 2)), g.weight({2}, 1, 3));
  std::vector<Var> joined{sub(centre, div(extent, g.number(x, 2))), add(centre, div(extent, g.number(x, 2)))};
  if (width > 4) joined.push_back(parts[2]);
  return concat(joined, 2);
}

// Rotary halves.
Var rotated(IdiomGraph& g, Var x) {
  const int64_t width = x.dim(-1), half = width / 2;
  if (half == 0) return neg(x);
  const Var first = slice(x, {0}, {half}, {-1}), second = slice(x, {half}, {width}, {-1});
  const Var turned = concat({neg(second), first}, -1);
  return add(mul(x, g.weight({width}, -1, 1)), mul(turned, g.weight({width}, -1, 1)));
}

Var gated_halves(IdiomGraph& g, Var x) {
  const int64_t width = x.dim(-1);
  if (width % 2 != 0) return swish(x);
  const std::vector<Var> parts = split(x, {width / 2, width / 2}, -1);
  return g.chance(50) ? mul(swish(parts[0]), parts[1]) : mul(parts[0], gelu(parts[1]));
}

Var standardized(IdiomGraph& g, Var x) {
  const Var d = sub(x, reduce_mean(x, {}, true));
  return div(d, add(sqrt(reduce_mean(mul(d, d), {}, true)), g.number(x, 1e-2)));
}

}  // namespace

void add_arithmetic_chain(IdiomGraph& g) {
  switch (g.between(0, 7)) {
    case 0: return g.leave(preprocessed(g));
    case 1: return g.leave(decoded(g, g.sequence()));
    case 2: return g.leave(rotated(g, g.sequence()));
    case 3: return g.leave(gated_halves(g, g.chance(50) ? g.sequence() : g.row()));
    case 4: return g.leave(standardized(g, g.row()));
    default: break;
  }
  const int64_t rank = g.between(2, 4);
  g.leave(tower(g, rank == 4 ? g.image() : rank == 3 ? g.sequence() : g.row()));
}

}  // namespace autograph
