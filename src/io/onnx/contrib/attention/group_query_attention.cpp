// Contrib GroupQueryAttention: what decoders with a key/value cache are exported as.
//
// seqlens_k + 1 is how many keys each row of the batch has, new ones included. The cache of a row holds its keys from
// position 0 on, and what lies behind them means nothing: new keys go right behind the old ones of their row, and no
// query sees further than itself. The present has as many positions as the past, or as the longest row.
//
// A cache with sliding_window_cache holds the latest positions of a row alone, from 0 on. With C of them, a window W
// and G = C - W + 1 it has, after T keys, T of them up to C, and T - G * ceil((T - C) / G) beyond.
#include "autograph/ops/attention.h"
#include "autograph/ops/index.h"

#include "io/onnx/contrib/attention/attention_parts.h"
#include "io/onnx/contrib/attention/rotary.h"

namespace autograph::io {
namespace {

struct Heads {
  Var q, k, v;  // [batch, heads, length, size]
};

Heads operands(const ContribCall& call) {
  const int64_t q_heads = call.attributes().integer("num_heads");
  const int64_t kv_heads = call.attributes().integer("kv_num_heads");
  const Var query = call["query"];
  if (call.has("key")) {
    return {split_heads(query, q_heads), split_heads(call["key"], kv_heads), split_heads(call["value"], kv_heads)};
  }
  const std::vector<Var> pieces = split(split_heads(query, q_heads + 2 * kv_heads), {q_heads, kv_heads, kv_heads}, 1);
  return {pieces[0], pieces[1], pieces[2]};
}

// Where things lie in the sequences of the batch.
struct Positions {
  Var queries;  // i64 [1]: new keys and queries
  Var past;     // i64 [batch, 1]: keys before the new ones
  Var count;    // i64 [batch, 1]: keys with the new ones
};

// Keys of the longest row of the batch, i64 [1].
Var longest_row(const ContribCall& call) {
  return reshape(cast(call["total_sequence_length"], DType::i64), std::vector<int64_t>{1});
}

Positions positions_of(const ContribCall& call) {
  Positions positions;
  positions.queries = extent_of(call["query"], 1);
  const Var one = call.constant(Tensor::vector({1}));
  const Var count = add(cast(unsqueeze(call["seqlens_k"], {-1}), DType::i64), one);
  // Of a prompt padded rows are shorter than the others.
  const Var total = longest_row(call);
  const Var zero = call.constant(Tensor::vector({0}));
  const Var past = where(equal(total, positions.queries), zero, sub(count, positions.queries));
  positions.past = reshape(past, std::vector<int64_t>{-1, 1});
  positions.count = reshape(count, std::vector<int64_t>{-1, 1});
  return positions;
}

// Of queries that nothing comes before.
Positions first_positions(const ContribCall& call, const Positions& positions) {
  return {positions.queries, call.constant(Tensor::of<int64_t>({1, 1}, {0})), positions.count};
}

Heads turned(const ContribCall& call, const Heads& heads, const Positions& positions) {
  if (!call.attributes().flag("do_rotary")) return heads;
  if (!call.has("cos_cache") || !call.has("sin_cache")) call.refuse("attribute 'do_rotary'", "1 needs both caches");
  const Var ids =
      call.has("position_ids") ? call["position_ids"] : add(positions.past, counted(call, positions.queries));
  const Var cosines = unsqueeze(gather(call["cos_cache"], ids), {1});
  const Var sines = unsqueeze(gather(call["sin_cache"], ids), {1});
  const bool interleaved = call.attributes().flag("rotary_interleaved");
  return {rotated(call, heads.q, cosines, sines, interleaved), rotated(call, heads.k, cosines, sines, interleaved),
          heads.v};
}

// past [batch, heads, positions, size] with `more` positions, i64 [1], and the new keys of every entry of the batch
// from its position `first` on, i64 [batch, 1].
Var append(const ContribCall& call, Var past, Var fresh, Var more, Var first) {
  const Var pads =
      concat({call.constant(Tensor::vector({0, 0, 0, 0, 0, 0})), more, call.constant(Tensor::vector({0}))}, 0);
  const Var room = apply(get_op("pad"), {past, pads});
  return tensor_scatter(room, fresh, reshape(first, std::vector<int64_t>{-1}), 2);
}

// As many positions as the longest row needs beyond those of the past.
Var missing_positions(const ContribCall& call, Var past) {
  return max({sub(longest_row(call), extent_of(past, 2)), call.constant(Tensor::vector({0}))});
}

// ---- Caches of a window ----------------------------------------------------------------------------------------

// What a cache of `capacity` positions holds of `keys`.
Var resident(const ContribCall& call, Var keys, Var capacity) {
  const Var one = call.constant(Tensor::vector({1})), zero = call.constant(Tensor::vector({0}));
  const Var window = call.constant(Tensor::vector({call.attributes().integer("local_window_size")}));
  const Var step = max({add(sub(capacity, window), one), one});
  const Var beyond = max({sub(keys, capacity), zero});
  return sub(keys, mul(step, div(add(beyond, sub(step, one)), step)));
}

// Rows [first, first + count) along axis 2 of every entry of the batch: a lookup in the table of all rows. What lies
// behind the last one means nothing.
Var rows_from(const ContribCall& call, Var all, Var first, Var count, int64_t heads) {
  const Var stride = extent_of(all, 2);
  const Var last = sub(stride, call.constant(Tensor::vector({1})));
  const Var rows = min({add(first, counted(call, count)), last});
  const Var batch =
      unsqueeze(mul(counted(call, extent_of(all, 0)), mul(stride, call.constant(Tensor::vector({heads})))), {1, 2});
  const Var head = unsqueeze(mul(counted(call, call.constant(Tensor::vector({heads}))), stride), {0, 2});
  const Var index = add(add(batch, head), unsqueeze(rows, {1}));
  const Var table = reshape(all, concat({call.constant(Tensor::vector({-1})), extent_of(all, 3)}, 0));
  return gather(table, index);
}

// Where the keys and values of a step lie. i64 [batch, 1] but for the capacity.
struct WindowedPlaces {
  Var capacity;  // i64 [1]: positions of the cache
  Var before;    // what it holds before the step
  Var first;     // where what is new goes
  Var gone;      // what it drops
};

WindowedPlaces windowed_places(const ContribCall& call, const Positions& positions) {
  WindowedPlaces places;
  places.capacity = extent_of(call["past_key"], 2);
  places.before = resident(call, positions.past, places.capacity);
  // Of a cache that is smaller than the window keys are missing: no place to write to.
  const Var window = call.constant(Tensor::vector({call.attributes().integer("local_window_size")}));
  places.first = where(less(places.capacity, window), call.constant(Tensor::vector({-1})), places.before);
  const Var fresh = sub(positions.count, positions.past);
  places.gone = sub(add(places.before, fresh), resident(call, positions.count, places.capacity));
  return places;
}

// bool [batch, 1, queries, keys].
Var visible(const ContribCall& call, const Positions& positions, Var keys) {
  const Var key = counted(call, keys);
  const Var query = unsqueeze(add(positions.past, counted(call, positions.queries)), {1, 3});
  Var seen = less_or_equal(key, query);
  const int64_t window = call.attributes().integer("local_window_size");
  if (window <= 0) return seen;
  return logical_and(seen, greater(key, sub(query, call.constant(Tensor::scalar<int64_t>(window)))));
}

void refuse_unsupported(const ContribCall& call) {
  for (const char* input : {"k_scale", "v_scale", "q_norm_weight", "k_norm_weight", "query_seqlens"})
    call.without(input);
  call.only("sliding_window_cache", {0, 1});
  const bool has_window = call.attributes().integer("local_window_size") > 0;
  if (call.attributes().flag("sliding_window_cache") && !has_window) {
    call.refuse("attribute 'local_window_size'", "expected 1 or more with sliding_window_cache");
  }
  call.only("causal", {1});
  call.only("qk_output", {0});
  for (const char* name : {"k_quant_type", "v_quant_type"}) {
    if (call.attributes().text(name) != "NONE") call.refuse(std::string("attribute '") + name + "'", "only NONE");
  }
}

// A key of zeros in front of all others, whose score is the sink of the head: softmax with one more addend below.
struct Sunk {
  Var keys, values, mask;
};

Var with_zero_row(Var x) {
  std::vector<int64_t> pads(8, 0);
  pads[2] = 1;
  return pad(x, pads);
}

Sunk with_sink(const ContribCall& call, const KeysValues& present, Var seen) {
  const DType dtype = present.keys.dtype();
  const auto number = [&](float value) { return as_dtype(call.constant(Tensor::scalar<float>(value)), dtype); };
  const Var hidden = where(seen, number(0), number(-std::numeric_limits<float>::infinity()));
  const int64_t heads = call.attributes().integer("num_heads");
  const Var sink = call.has("head_sink") ? reshape(call["head_sink"], std::vector<int64_t>{1, heads, 1, 1})
                                         : reshape(number(0), std::vector<int64_t>{1, 1, 1, 1});
  // Batch and queries of the mask, the heads of the sink.
  const Var column = add(mul(cast(slice(seen, {0}, {1}, {3}), dtype), number(0)), sink);
  const Var rows = add(hidden, mul(sink, number(0)));
  return {with_zero_row(present.keys), with_zero_row(present.values), concat({column, rows}, 3)};
}

std::vector<Var> group_query_attention(ContribCall& call) {
  refuse_unsupported(call);
  const Positions positions = positions_of(call);
  const Heads heads = turned(call, operands(call), positions);
  KeysValues present{heads.k, heads.v}, all = present;
  Var seen;
  if (call.has("past_key") && call.attributes().flag("sliding_window_cache")) {
    const WindowedPlaces places = windowed_places(call, positions);
    const int64_t kv_heads = call.attributes().integer("kv_num_heads");
    const auto appended = [&](Var past, Var fresh) {
      return append(call, past, fresh, positions.queries, places.first);
    };
    const auto kept = [&](Var rows) { return rows_from(call, rows, places.gone, places.capacity, kv_heads); };
    all = {appended(call["past_key"], heads.k), appended(call["past_value"], heads.v)};
    present = {kept(all.keys), kept(all.values)};
    seen = visible(call, {positions.queries, places.before, positions.count}, add(places.capacity, positions.queries));
  } else if (call.has("past_key")) {
    const Var more = missing_positions(call, call["past_key"]);
    all = present = {append(call, call["past_key"], heads.k, more, positions.past),
                     append(call, call["past_value"], heads.v, more, positions.past)};
    seen = visible(call, positions, add(extent_of(call["past_key"], 2), more));
  } else if (call.attributes().integer("local_window_size") > 0) {
    seen = visible(call, first_positions(call, positions), positions.queries);
  }
  const Attributes& attributes = call.attributes();
  Attributes options{{"softcap", attributes.get_or("softcap", 0.0F)}};
  if (attention_scale(call) > 0) options.set("scale", attention_scale(call));
  if (!seen.is_valid()) options.set("is_causal", int64_t{1});
  Var keys = all.keys, values = all.values, mask = seen, bias = call["attention_bias"];
  const auto number = [&](float value) { return as_dtype(call.constant(Tensor::scalar<float>(value)), keys.dtype()); };
  if (attributes.integer("smooth_softmax") > 0 || call.has("head_sink")) {
    if (bias.is_valid()) call.refuse("input 'attention_bias'", "not supported with a sink");
    if (!seen.is_valid()) seen = visible(call, first_positions(call, positions), positions.queries);
    options.erase("is_causal");
    const Sunk sunk = with_sink(call, all, seen);
    keys = sunk.keys, values = sunk.values, mask = sunk.mask;
  } else if (bias.is_valid()) {
    mask = seen.is_valid() ? where(seen, bias, number(-std::numeric_limits<float>::infinity())) : bias;
  }
  const Var y = apply(get_op("attention"), {heads.q, keys, values, mask}, std::move(options));
  return {join_heads(y), present.keys, present.values, Var()};
}

}  // namespace

std::vector<ContribOp> contrib_group_query_attention() {
  const auto integer = [](std::string_view name) { return optional_attribute(name, AttributeType::integer); };
  const auto real = [](std::string_view name) { return optional_attribute(name, AttributeType::real); };
  return {contrib_op(
      "GroupQueryAttention",
      "query, key?, value?, past_key?, past_value?, seqlens_k, total_sequence_length, cos_cache?, sin_cache?, "
      "position_ids?, attention_bias?, head_sink?, k_scale?, v_scale?, q_norm_weight?, k_norm_weight?, query_seqlens?",
      "output, present_key?, present_value?, output_qk?", "gather, mul, add, sub, tensor_scatter, attention",
      group_query_attention,
      {required_attribute("num_heads"), required_attribute("kv_num_heads"), with_default("do_rotary", int64_t{0}),
       with_default("rotary_interleaved", int64_t{0}), real("scale"), real("softcap"),
       with_default("local_window_size", int64_t{-1}), with_default("smooth_softmax", int64_t{-1}),
       with_default("sliding_window_cache", int64_t{0}), with_default("causal", int64_t{1}),
       with_default("qk_output", int64_t{0}), with_default("k_quant_type", std::string("NONE")),
       with_default("v_quant_type", std::string("NONE")), integer("kv_cache_bit_width"), real("qk_norm_epsilon"),
       real("q_norm_epsilon"), real("k_norm_epsilon")})};
}

}  // namespace autograph::io
