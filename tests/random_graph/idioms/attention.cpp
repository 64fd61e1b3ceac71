// Attention in the spellings of exporters: how heads are split, where the scale stands, every form of mask.
#include <cmath>
#include <limits>

#include "autograph/ops/activation.h"
#include "autograph/ops/attention.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/shape.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Sizes {
  int64_t heads, size;
  int64_t width() const { return heads * size; }
};

Var linear(IdiomGraph& g, Var x, int64_t out) {
  const Var y = matmul(x, g.weight({x.dim(-1), out}));
  return g.chance(70) ? add(y, g.weight({out})) : y;
}

std::vector<int64_t> split_shape(const Sizes& s) { return {0, -1, s.heads, s.size}; }

// q, k, v as [batch, heads, length, size].
struct Qkv {
  Var q, k, v;
};

Var split_heads(Var x, const Sizes& s) { return transpose(reshape(x, split_shape(s)), {0, 2, 1, 3}); }

Qkv from_one_product(IdiomGraph& g, Var x, const Sizes& s) {
  const Var all = linear(g, x, 3 * s.width());
  if (g.chance(40)) {
    const std::vector<Var> parts = split(all, {s.width(), s.width(), s.width()}, 2);
    return {split_heads(parts[0], s), split_heads(parts[1], s), split_heads(parts[2], s)};
  }
  // As timm writes it.
  const Var apart = transpose(reshape(all, std::vector<int64_t>{0, -1, 3, s.heads, s.size}), {2, 0, 3, 1, 4});
  if (g.chance(50)) {
    const std::vector<Var> parts = split(apart, {1, 1, 1}, 0);
    return {squeeze(parts[0], {0}), squeeze(parts[1], {0}), squeeze(parts[2], {0})};
  }
  const auto part = [&](int64_t k) { return gather(apart, g.constant(Tensor::scalar(k)), 0); };
  return {part(0), part(1), part(2)};
}

Qkv draw_qkv(IdiomGraph& g, Var x, const Sizes& s) {
  if (g.chance(35)) return from_one_product(g, x, s);
  const Var from = g.chance(25) ? g.input(x.dtype(), {-1, g.between(1, 9), 6}) : x;
  return {split_heads(linear(g, x, s.width()), s), split_heads(linear(g, from, s.width()), s),
          split_heads(linear(g, from, s.width()), s)};
}

Var scaled(IdiomGraph& g, Var x, double factor) {
  return g.chance(50) ? mul(x, g.number(x, factor)) : div(x, g.number(x, 1 / factor));
}

// The scores; the scale on q, on k, on both, or behind the product.
Var scores_of(IdiomGraph& g, Var q, Var k, const Sizes& s) {
  const double factor = 1 / std::sqrt(static_cast<double>(s.size));
  const int64_t place = g.between(0, 4);
  if (place == 0) q = scaled(g, q, factor);
  if (place == 1) k = scaled(g, k, factor);
  if (place == 2) q = scaled(g, q, std::sqrt(factor)), k = scaled(g, k, std::sqrt(factor));
  const Var scores = matmul(q, transpose(k, {0, 1, 3, 2}));
  return place == 3 ? scaled(g, scores, factor) : scores;
}

// A bool tensor over the scores: padding of keys, causal, or any; as an input or a constant.
Var drawn_condition(IdiomGraph& g, Var scores) {
  const Dim batch = scores.shape()[0], queries = scores.shape()[2], keys = scores.shape()[3];
  Dims dims{1, 1, 1, keys.value()};
  if (g.chance(50) && batch.is_known()) dims[0] = batch.value();
  if (g.chance(50) && queries.is_known()) dims[2] = queries.value();
  if (g.chance(20)) dims[1] = scores.dim(1);
  if (g.chance(40) && dims[2] > 1) {
    const Var ones = g.constant(draw_tensor(g.random(), DType::f32, {dims[2], dims[3]}, 1, 1));
    return cast(tril(ones), DType::boolean);
  }
  return g.chance(70) ? g.input(DType::boolean, dims) : g.constant(draw_tensor(g.random(), DType::boolean, dims));
}

// Of the first key alone.
Var first_key(IdiomGraph& g, int64_t keys) {
  Tensor tensor = Tensor::zeros(DType::boolean, {1, 1, 1, keys});
  tensor.mutable_data<bool>()[0] = true;
  return g.constant(tensor);
}

Var condition_on(IdiomGraph& g, Var scores, bool keeps_first) {
  const Var drawn = drawn_condition(g, scores);
  return keeps_first ? logical_or(drawn, first_key(g, scores.dim(3))) : drawn;
}

double lowest(DType dtype) {
  return dtype == DType::f16 ? -65504.0 : static_cast<double>(std::numeric_limits<float>::lowest());
}

Var masked_once(IdiomGraph& g, Var scores, bool keeps_first) {
  const Var seen = condition_on(g, scores, keeps_first);
  const double hidden = g.one_of({lowest(scores.dtype()), -kInfinity, -1e4, -1e9});
  const double bounded = scores.dtype() == DType::f16 ? std::fmax(hidden, -6e4) : hidden;
  const Var other = scalar_like(scores, std::isinf(hidden) ? hidden : bounded);
  switch (g.between(0, 5)) {
    case 0: return where(seen, scores, other);
    case 1: return where(logical_not(seen), other, scores);
    case 2: return add(scores, where(seen, scalar_like(scores, 0), other));
    case 3: {  // BERT: (1 - mask) * -10000
      const Var kept = cast(seen, scores.dtype());
      return add(scores, mul(sub(scalar_like(scores, 1), kept), scalar_like(scores, g.chance(50) ? -1e4 : -3e4)));
    }
    case 4: {
      const Var kept = cast(seen, scores.dtype());
      const Var far = scalar_like(scores, scores.dtype() == DType::f16 ? -6e4 : -3e38);
      return add(mul(sub(scalar_like(scores, 1), kept), far), scores);
    }
    default: {  // a learned bias, as in Swin and T5
      const int64_t queries = scores.shape()[2].is_known() ? scores.dim(2) : 1;
      return add(scores, g.weight({1, scores.dim(1), queries, scores.dim(3)}, -2, 2));
    }
  }
}

Var attended_values(IdiomGraph& g, Var scores, Var v) {
  if (!g.chance(70) || !scores.shape()[3].is_known()) return matmul(softmax(scores), v);
  const bool keeps_first = g.chance(60);
  for (int64_t k = g.between(1, 3); k > 0; --k) scores = masked_once(g, scores, keeps_first);
  const Var weights = softmax(scores);
  if (g.chance(20)) return matmul(where(is_nan(weights), g.number(weights, 0), weights), v);
  const Var y = matmul(weights, v);
  if (keeps_first) return y;
  // Rows without keys may be NaN, of which activations behind convolutions make numbers.
  g.output(y);
  return where(is_nan(y), scalar_like(y, 0), y);
}

// Heads and batch in one extent, as torch's MultiheadAttention does.
Var with_merged_batch(IdiomGraph& g, const Qkv& heads, const Sizes& s) {
  const Dim batch = heads.q.shape()[0];
  const auto merged = [&](Var x) { return reshape(x, std::vector<int64_t>{-1, x.dim(2), s.size}); };
  const Var q = merged(mul(heads.q, g.number(heads.q, 0.5)));
  const Var weights = softmax(matmul(q, transpose(merged(heads.k), {0, 2, 1})));
  return reshape(matmul(weights, merged(heads.v)),
                 std::vector<int64_t>{batch.value_or(-1), s.heads, heads.q.dim(2), s.size});
}

Var shared_heads(IdiomGraph& g, Var x, const Sizes& s) {
  const Var heads = split_heads(linear(g, x, s.size), {1, s.size});
  return expand(heads, {1, s.heads, 1, 1});
}

Var fused_op(IdiomGraph& g, Var x, const Sizes& s) {
  AttentionOptions options;
  options.q_num_heads = options.kv_num_heads = s.heads;
  options.is_causal = g.chance(40);
  return attention(linear(g, x, s.width()), linear(g, x, s.width()), linear(g, x, s.width()), options);
}

Var attended(IdiomGraph& g, Var x, const Sizes& s) {
  if (g.chance(10)) return fused_op(g, x, s);
  Qkv heads = draw_qkv(g, x, s);
  if (g.chance(12)) heads.k = shared_heads(g, x, s), heads.v = shared_heads(g, x, s);
  const bool is_static = heads.q.type().is_static() && heads.k.type().is_static();
  Var y;
  const bool is_one_batch = heads.q.shape()[0] == heads.k.shape()[0];
  if (g.chance(20) && is_static && is_one_batch) {
    y = with_merged_batch(g, heads, s);
  } else {
    y = attended_values(g, scores_of(g, heads.q, heads.k, s), heads.v);
  }
  return reshape(transpose(y, {0, 2, 1, 3}), std::vector<int64_t>{0, -1, s.width()});
}

}  // namespace

void add_attention(IdiomGraph& g) {
  const Var x = g.sequence();
  const int64_t width = x.dim(-1);
  const Sizes s{g.one_of<int64_t>({1, 2, 3, 4}), g.one_of<int64_t>({1, 2, 4, 5, 8})};
  const Var normal = g.chance(40) ? layer_normalization(x, g.weight({width}, 0.5, 1.5), g.weight({width})) : x;
  const Var y = linear(g, attended(g, normal, s), width);
  const Var sum = g.chance(70) ? add(x, y) : y;
  g.leave(sum);
  if (!g.chance(40)) return;
  const Var hidden = add_activation(g, linear(g, sum, 2 * width));
  g.leave(add(linear(g, hidden, width), sum));
}

}  // namespace autograph
