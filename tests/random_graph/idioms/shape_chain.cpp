// Shapes computed from shapes, as exporters write them where extents may vary: Shape, Gather, Concat, Reshape and their
// relatives.
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

Var scalar_i64(IdiomGraph& g, int64_t value) { return g.constant(Tensor::scalar(value)); }

// The extent of an axis as i64 [1], or as a scalar.
Var extent(IdiomGraph& g, Var x, int64_t axis, bool as_scalar = false) {
  const Var whole = shape(x);
  if (!as_scalar && g.chance(40)) return slice(whole, {axis}, {axis + 1}, {0});
  const Var one = gather(whole, scalar_i64(g, axis), 0);
  if (as_scalar) return one;
  return g.chance(50) ? unsqueeze(one, {0}) : reshape(one, std::vector<int64_t>{1});
}

Var flattened(IdiomGraph& g, Var x) {
  const Var target = concat({extent(g, x, 0), g.integers({-1}), extent(g, x, x.rank() - 1)}, 0);
  return x.rank() == 4 ? reshape(transpose(x, {0, 2, 3, 1}), concat({extent(g, x, 0), g.integers({-1, x.dim(1)})}, 0))
                       : reshape(x, target);
}

// [N, L, D] as heads and back, by computed shapes.
Var by_heads(IdiomGraph& g, Var x) {
  const int64_t width = x.dim(2), heads = width % 4 == 0 ? 4 : width % 2 == 0 ? 2 : 1;
  const Var apart = reshape(x, concat({extent(g, x, 0), extent(g, x, 1), g.integers({heads, width / heads})}, 0));
  const Var turned = mul(transpose(apart, {0, 2, 1, 3}), g.number(x, 0.5));
  return reshape(transpose(turned, {0, 2, 1, 3}), concat({extent(g, x, 0), extent(g, x, 1), g.integers({-1})}, 0));
}

// Half of an axis, its length computed.
Var half_of(IdiomGraph& g, Var x) {
  const Var length = extent(g, x, 1);
  const Var half = div(add(length, g.integers({1})), g.integers({2}));
  const Var axes = g.integers({1});
  if (g.chance(50)) return apply(get_op("slice"), {x, g.integers({0}), half, axes});
  return apply(get_op("slice"),
               {x, sub(length, half), g.chance(50) ? length : g.integers({9223372036854775807}), axes});
}

// Positions 0, 1, ... up to the length, looked up in a table.
Var with_positions(IdiomGraph& g, Var x) {
  const Var positions = range(scalar_i64(g, 0), extent(g, x, 1, true), scalar_i64(g, 1));
  const Var table = g.weight({16, x.dim(2)});
  const Var rows = gather(table, positions, 0);
  return add(x, g.chance(50) ? unsqueeze(rows, {0}) : rows);
}

Var expanded(IdiomGraph& g, Var x) {
  const Var target = concat({extent(g, x, 0), extent(g, x, 1), g.integers({x.dim(2)})}, 0);
  const Var token = g.weight({1, 1, x.dim(2)});
  if (g.chance(50)) return add(x, apply(get_op("expand"), {token, target}));
  return add(x, add(token, cast(constant_of_shape(target, Tensor::of<float>({1}, {0.25F})), x.dtype())));
}

// The class token in front, as in ViT.
Var with_token(IdiomGraph& g, Var x) {
  const Var target = concat({extent(g, x, 0), g.integers({-1, -1})}, 0);
  const Var ones = constant_of_shape(g.integers({3}), Tensor::vector({1}));
  const Var wanted = where(equal(target, mul(ones, g.integers({-1}))), ones, target);
  return concat({apply(get_op("expand"), {g.weight({1, 1, x.dim(2)}), wanted}), x}, 1);
}

// Merges neighbours of a sequence of even length by a computed shape.
Var folded_pairs(IdiomGraph& g, Var x) {
  const Var doubled = concat({x, x}, 1);
  const Var half = div(extent(g, doubled, 1), g.integers({2}));
  return reshape(doubled, concat({extent(g, x, 0), half, g.integers({2 * x.dim(2)})}, 0));
}

// Up to the extents of another image, as feature pyramids do.
Var resized_like(IdiomGraph& g, Var x) {
  const Var whole = shape(x);
  const Var plane = mul(slice(whole, {2}, {4}, {0}), g.integers({2, 2}));
  const Var sizes = concat({slice(whole, {0}, {2}, {0}), plane}, 0);
  const bool is_linear = g.chance(40);
  Attributes attributes{{"mode", std::string(is_linear ? "linear" : "nearest")},
                        {"coordinate_transformation_mode", std::string(is_linear ? "half_pixel" : "asymmetric")}};
  if (!is_linear) attributes.set("nearest_mode", std::string("floor"));
  return apply(get_op("resize"), {x, Var(), Var(), sizes}, attributes);
}

// Divides by a number computed from the extents.
Var mean_by_count(IdiomGraph& g, Var x) {
  const Var count = cast(extent(g, x, 1, true), x.dtype());
  return div(reduce_sum(x, {1}, g.chance(50)), count);
}

}  // namespace

void add_shape_chain(IdiomGraph& g) {
  if (g.chance(25)) {
    const Var x = g.image();
    return g.leave(g.chance(50) ? flattened(g, x) : resized_like(g, x));
  }
  const Var x = g.sequence();
  switch (g.between(0, 8)) {
    case 0: return g.leave(flattened(g, x));
    case 1: return g.leave(half_of(g, x));
    case 2: return g.leave(x.shape()[1].value_or(99) <= 16 ? with_positions(g, x) : by_heads(g, x));
    case 3: return g.leave(expanded(g, x));
    case 4: return g.leave(with_token(g, x));
    case 5: return g.leave(folded_pairs(g, x));
    case 6: return g.leave(mean_by_count(g, x));
    default: return g.leave(by_heads(g, x));
  }
}

}  // namespace autograph
