// Attention as ONNX Runtime's optimiser and exporters of language models write it: packed and per head, with caches,
// with every form of mask.
#include "autograph/ops/elementwise.h"
#include "autograph/ops/shape.h"
#include "random_graph/idioms/contrib_call.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

struct Heads {
  int64_t count, size;
  int64_t width() const { return count * size; }
};

Heads draw_heads(IdiomGraph& g) { return {g.one_of<int64_t>({1, 2, 3}), g.one_of<int64_t>({4, 8})}; }

// Queries against the keys of a cache and new ones, in a batch whose extents are known: caches and masks have them,
// too.
struct Turn {
  int64_t batch, queries, past;
  int64_t keys() const { return past + queries; }
};

Turn draw_turn(IdiomGraph& g, int percent_with_past) {
  return {g.between(1, 3), g.between(1, 7), g.chance(percent_with_past) ? g.between(1, 7) : 0};
}

// 1 where a key is seen. The first one always is: where all are hidden, rounding decides.
Var seen_keys(IdiomGraph& g, const Dims& dims) {
  Tensor first = Tensor::zeros(DType::i32, {dims.back()});
  first.mutable_data<int32_t>()[0] = 1;
  return max({g.input(DType::i32, dims, 0, 1), g.constant(first)});
}

// How many keys are seen, from which one on and to which, which keys, or which pairs. A first key behind the queries of
// causal attention would hide all.
Var draw_mask(IdiomGraph& g, const Turn& turn, bool may_begin_late) {
  const auto keys = static_cast<double>(turn.keys());
  switch (g.between(0, may_begin_late ? 4 : 3)) {
    case 0: return {};
    case 1: return g.input(DType::i32, {turn.batch}, 1, keys);
    case 2: return seen_keys(g, {turn.batch, turn.keys()});
    case 3: return seen_keys(g, {turn.batch, turn.queries, turn.keys()});
    default: {
      const auto middle = static_cast<double>(turn.keys() / 2);
      return concat({g.input(DType::i32, {turn.batch}, middle + 1, keys), g.input(DType::i32, {turn.batch}, 0, middle)},
                    0);
    }
  }
}

Var draw_score_bias(IdiomGraph& g, const Turn& turn, int64_t heads) {
  if (g.chance(60)) return {};
  return g.input(DType::f32,
                 {g.one_of({int64_t{1}, turn.batch}), g.one_of({int64_t{1}, heads}), turn.queries, turn.keys()});
}

Var floats(IdiomGraph& g, Dims dims, double bound = 0.5) {
  return g.constant(draw_tensor(g.random(), DType::f32, std::move(dims), -bound, bound));
}

void output_all(IdiomGraph& g, const std::vector<Var>& values) {
  for (const Var& v : values) {
    if (v.is_valid()) g.output(v);  // of a batch of its own
  }
}

void set_some_options(IdiomGraph& g, Attributes& attributes) {
  if (g.chance(30)) attributes.set("scale", 0.3F);
  if (g.chance(30)) attributes.set("mask_filter_value", g.one_of({-1e4F, -50.0F, -3.4028234663852886e38F}));
}

// q, k and v from one product inside the op.
void add_packed_attention(IdiomGraph& g) {
  const Var x = g.sequence();
  const Heads heads = draw_heads(g);
  const int64_t packed = 3 * heads.width();
  const Var bias = g.chance(80) ? g.weight_like(x, {packed}) : Var();
  g.leave(contrib(g, "Attention", {x, g.weight_like(x, {x.dim(-1), packed}), bias},
                  {{"num_heads", heads.count}, {"unidirectional", g.between(0, 1)}}));
}

void add_masked_attention(IdiomGraph& g) {
  const Heads heads = draw_heads(g);
  const Turn turn = draw_turn(g, 40);
  const int64_t width = g.between(3, 12), values = turn.past > 0 || g.chance(50) ? heads.width() : 6 * heads.count;
  const int64_t packed = 2 * heads.width() + values;
  const bool is_causal = g.chance(50);
  const Var past = turn.past > 0 ? g.input(DType::f32, {2, turn.batch, heads.count, turn.past, heads.size}) : Var();
  const Var x = g.input(DType::f32, {turn.batch, turn.queries, width});
  Attributes attributes{{"num_heads", heads.count}, {"unidirectional", int64_t{is_causal}}};
  if (values != heads.width()) {
    attributes.set("qkv_hidden_sizes", std::vector<int64_t>{heads.width(), heads.width(), values});
  }
  set_some_options(g, attributes);
  const std::vector<Var> inputs{
      x,    floats(g, {width, packed}),           floats(g, {packed}), draw_mask(g, turn, !is_causal),
      past, draw_score_bias(g, turn, heads.count)};
  output_all(g, contrib_outputs(g, "Attention", inputs, attributes, past.is_valid() ? 2 : 1));
}

void add_multi_head_attention(IdiomGraph& g) {
  const Var x = g.sequence();
  const Heads heads = draw_heads(g);
  const auto linear = [&](Var from) {
    return contrib(g, "FusedMatMul", {from, g.weight_like(from, {from.dim(-1), heads.width()})});
  };
  const Var kv = g.chance(30) ? g.input(x.dtype(), {-1, g.between(1, 9), 6}) : x;
  const bool is_causal = kv.id() == x.id() && g.chance(40);
  const Var bias = g.chance(50) ? g.weight_like(x, {3 * heads.width()}) : Var();
  Attributes attributes{{"num_heads", heads.count}, {"unidirectional", int64_t{is_causal}}};
  if (g.chance(30)) attributes.set("scale", 0.3F);
  g.leave(contrib(g, "MultiHeadAttention", {linear(x), linear(kv), linear(kv), bias}, attributes));
}

// q, k and v apart, in one tensor, or keys with values in one.
std::vector<Var> draw_operands(IdiomGraph& g, const Turn& turn, const Heads& heads) {
  const auto values = [&](Dims dims) { return g.input(DType::f32, std::move(dims)); };
  const Var packed_bias = g.chance(50) ? floats(g, {3 * heads.width()}) : Var();
  const Dims dims{turn.batch, turn.queries, heads.width()};
  switch (turn.past > 0 ? 2 : g.between(0, 3)) {
    case 0: return {values({turn.batch, turn.queries, heads.count, 3, heads.size}), Var(), Var(), Var()};
    case 1: return {values(dims), values({turn.batch, turn.queries, heads.count, 2, heads.size}), Var(), Var()};
    default: {
      const Var q = values(dims), k = values(dims), v = values(dims);
      return {q, k, v, packed_bias};
    }
  }
}

void add_cached_attention(IdiomGraph& g) {
  const Heads heads = draw_heads(g);
  const Turn turn = draw_turn(g, 60);
  const bool is_causal = g.chance(50);
  const auto cache = [&] {
    return turn.past > 0 ? g.input(DType::f32, {turn.batch, heads.count, turn.past, heads.size}) : Var();
  };
  std::vector<Var> inputs = draw_operands(g, turn, heads);
  inputs.push_back(draw_mask(g, turn, false));
  inputs.push_back(draw_score_bias(g, turn, heads.count));
  inputs.push_back(cache());
  inputs.push_back(cache());
  Attributes attributes{{"num_heads", heads.count}, {"unidirectional", int64_t{is_causal}}};
  set_some_options(g, attributes);
  output_all(g, contrib_outputs(g, "MultiHeadAttention", inputs, attributes, turn.past > 0 || g.chance(30) ? 3 : 1));
}

// How many keys each row has, less one. One new key may stand anywhere in the cache.
Var draw_lengths(IdiomGraph& g, const Turn& turn) {
  if (turn.past > 0 && g.chance(40)) return g.input(DType::i32, {turn.batch}, 0, static_cast<double>(turn.past));
  const std::vector<int32_t> last(static_cast<size_t>(turn.batch), static_cast<int32_t>(turn.keys() - 1));
  return g.constant(Tensor::of<int32_t>({turn.batch}, last));
}

// The first tokens of a language model, and then one behind a cache.
void add_group_query_attention(IdiomGraph& g) {
  const int64_t kv_heads = g.between(1, 2), heads = kv_heads * g.between(1, 2), size = 16;
  Turn turn = draw_turn(g, 50);
  if (turn.past > 0) turn.queries = 1;
  const auto values = [&](Dims dims) { return g.input(DType::f32, std::move(dims)); };
  const auto operand = [&](int64_t count) { return values({turn.batch, turn.queries, count * size}); };
  const auto cache = [&] { return turn.past > 0 ? values({turn.batch, kv_heads, turn.past, size}) : Var(); };
  const bool is_rotated = g.chance(50), is_packed = g.chance(30);
  const auto angles = [&] { return is_rotated ? floats(g, {32, size / 2}, 1) : Var(); };
  std::vector<Var> inputs{operand(is_packed ? heads + 2 * kv_heads : heads)};
  for (int k = 0; k < 2; ++k) inputs.push_back(is_packed ? Var() : operand(kv_heads));
  for (int k = 0; k < 2; ++k) inputs.push_back(cache());
  inputs.push_back(draw_lengths(g, turn));
  inputs.push_back(g.constant(Tensor::scalar(static_cast<int32_t>(turn.keys()))));
  for (int k = 0; k < 2; ++k) inputs.push_back(angles());
  inputs.emplace_back();  // positions
  inputs.push_back(draw_score_bias(g, turn, heads));
  if (!inputs.back().is_valid() && g.chance(40)) inputs.push_back(floats(g, {heads}));
  Attributes attributes{{"num_heads", heads}, {"kv_num_heads", kv_heads}, {"do_rotary", int64_t{is_rotated}}};
  if (is_rotated) attributes.set("rotary_interleaved", g.between(0, 1));
  if (g.chance(25)) attributes.set("local_window_size", g.between(1, 6));
  if (g.chance(25)) attributes.set("softcap", 2.0F);
  if (inputs.size() == 11 && !inputs.back().is_valid() && g.chance(20)) attributes.set("smooth_softmax", int64_t{1});
  output_all(g, contrib_outputs(g, "GroupQueryAttention", inputs, attributes, 3));
}

void add_rotary_embedding(IdiomGraph& g) {
  const Heads heads = draw_heads(g);
  const Var x = g.input(DType::f32, {-1, g.between(1, 6), heads.width()});
  const Var first = floats(g, {12, heads.size / 2}, 1), second = floats(g, {12, heads.size / 2}, 1);
  g.leave(
      contrib(g, "RotaryEmbedding", {x, g.integers({g.between(0, 5)}), first, second},
              {{"interleaved", g.between(0, 1)}, {"num_heads", heads.count}, {"rotary_embedding_dim", heads.size}}));
}

}  // namespace

void add_contrib_attention(IdiomGraph& g) {
  constexpr void (*kBlocks[])(IdiomGraph&) = {add_packed_attention, add_masked_attention,      add_multi_head_attention,
                                              add_cached_attention, add_group_query_attention, add_rotary_embedding};
  kBlocks[g.between(0, std::ssize(kBlocks) - 1)](g);
}

}  // namespace autograph
