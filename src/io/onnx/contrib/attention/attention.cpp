// Contrib attention: Attention and QAttention, which project their input themselves, and MultiHeadAttention.
#include "autograph/ops/attention.h"

#include "autograph/ops/linear.h"
#include "io/onnx/contrib/attention/attention_parts.h"

namespace autograph::io {
namespace {

// ---- Attention, QAttention -------------------------------------------------------------------------------------

// Extents of q, k and v in the projection.
std::vector<int64_t> projected_sizes(const ContribCall& call, Var weights) {
  const int64_t total = call.extent(weights, 1);
  const auto* given = call.attributes().find_as<std::vector<int64_t>>("qkv_hidden_sizes");
  if (!given || given->empty()) return {total / 3, total / 3, total / 3};
  if (given->size() != 3) call.refuse("attribute 'qkv_hidden_sizes'", "expected 3 numbers");
  return *given;
}

// The two halves of past [2, batch, heads, length, size].
KeysValues halves_of(Var past) {
  if (!past.is_valid()) return {};
  const auto half = [&](int64_t i) { return squeeze(slice(past, {i}, {i + 1}, {0}), {0}); };
  return {half(0), half(1)};
}

Var joined_halves(const KeysValues& present) {
  return concat({unsqueeze(present.keys, {0}), unsqueeze(present.values, {0})}, 0);
}

// Attention over the pieces of `projected`, [batch, length, sum of sizes].
std::vector<Var> attend_projected(const ContribCall& call, Var projected, const std::vector<int64_t>& sizes, Var past,
                                  Var bias) {
  call.only("do_rotary", {0});
  call.only("past_present_share_buffer", {0});
  const int64_t heads = call.attributes().integer("num_heads");
  if (call.rank(projected) != 3) call.refuse("input", "expected rank 3, got " + to_string(projected.type()));
  if (past.is_valid() && call.rank(past) != 5) call.refuse("past", "expected rank 5, got " + to_string(past.type()));
  const std::vector<Var> pieces = split(projected, sizes, 2);
  const Var length = extent_of(projected, 1);
  const Var past_length = past.is_valid() ? extent_of(past, 3) : Var();
  const MaskSource source{.mask = call["mask_index"],
                          .bias = bias,
                          .queries = length,
                          .keys = past.is_valid() ? add(length, past_length) : length,
                          .past = past_length,
                          .num_batch = extent_of(projected, 0),
                          .batch = projected.shape()[0],
                          .dtype = projected.dtype(),
                          .causal = call.attributes().flag("unidirectional")};
  const AttentionMask mask = attention_mask(call, source);
  AttentionOptions options{.mask = mask.mask, .is_causal = mask.is_causal, .scale = attention_scale(call)};
  if (!past.is_valid() && !call.wants(1)) {
    options.q_num_heads = options.kv_num_heads = heads;
    return {autograph::attention(pieces[0], pieces[1], pieces[2], options)};
  }
  const KeysValues fresh{split_heads(pieces[1], heads), split_heads(pieces[2], heads)};
  const KeysValues present = with_past(halves_of(past), fresh);
  const Var y = autograph::attention(split_heads(pieces[0], heads), present.keys, present.values, options);
  return {join_heads(y), call.wants(1) ? joined_halves(present) : Var()};
}

std::vector<Var> attention_body(ContribCall& call) {
  call.without("past_sequence_length");
  Var projected = matmul(call["input"], call["weights"]);
  if (call.has("bias")) projected = add(projected, call["bias"]);
  return attend_projected(call, projected, projected_sizes(call, call["weights"]), call["past"],
                          call["attention_bias"]);
}

std::vector<Var> quantized_attention(ContribCall& call) {
  const Var projected =
      quantized_product(call, {call["input"], call["input_scale"], call["input_zero_point"], call["weight"],
                               call["weight_scale"], call["weight_zero_point"], call["bias"]});
  return attend_projected(call, projected, projected_sizes(call, call["weight"]), call["past"], Var());
}

// ---- MultiHeadAttention ----------------------------------------------------------------------------------------

// q, k and v as the node gives them: each [batch, length, heads * size], or [batch, heads, length, size].
struct Operands {
  Var q, k, v;
};

// Slice `i` of axis 3 of [batch, length, heads, n, size], per head.
Var unpacked(Var x, int64_t i) { return transpose(squeeze(slice(x, {i}, {i + 1}, {3}), {3}), {0, 2, 1, 3}); }

Operands unpack(const ContribCall& call) {
  const Var q = call["query"], k = call["key"], v = call["value"];
  if (call.rank(q) == 5) return {unpacked(q, 0), unpacked(q, 1), unpacked(q, 2)};
  if (!k.is_valid()) call.refuse("input 'key'", "missing, with a query " + to_string(q.type()));
  if (call.rank(k) == 5) return {q, unpacked(k, 0), unpacked(k, 1)};
  if (!v.is_valid()) call.refuse("input 'value'", "missing, with a key " + to_string(k.type()));
  return {q, k, v};
}

// The pieces of the bias on q, k and v.
Operands with_bias(const ContribCall& call, Operands operands) {
  const Var bias = call["bias"];
  if (!bias.is_valid()) return operands;
  if (call.rank(operands.q) != 3 || call.rank(operands.k) != 3 || call.rank(operands.v) != 3) {
    call.refuse("input 'bias'", "not supported with packed operands");
  }
  const Var sizes = concat({extent_of(operands.q, 2), extent_of(operands.k, 2), extent_of(operands.v, 2)}, 0);
  const std::vector<Var> pieces = apply_all(get_op("split"), {bias, sizes}, {{"axis", int64_t{0}}}, 3);
  return {add(operands.q, pieces[0]), add(operands.k, pieces[1]), add(operands.v, pieces[2])};
}

void check_ranks(const ContribCall& call, const Operands& operands) {
  for (const Var& x : {operands.q, operands.k, operands.v}) {
    if (call.rank(x) != 3 && call.rank(x) != 4)
      call.refuse("operands", "expected rank 3 or 4, got " + to_string(x.type()));
  }
}

Var per_head(const ContribCall& call, Var x, int64_t heads) { return call.rank(x) == 4 ? x : split_heads(x, heads); }

std::vector<Var> multi_head_attention(ContribCall& call) {
  call.without("past_sequence_length");
  call.without("cache_indirection");
  const int64_t heads = call.attributes().integer("num_heads");
  const Operands given = with_bias(call, unpack(call));
  check_ranks(call, given);
  const KeysValues past{call["past_key"], call["past_value"]};
  const Var past_length = past.keys.is_valid() ? extent_of(past.keys, 2) : Var();
  const Var length = extent_of(given.k, call.rank(given.k) == 4 ? 2 : 1);
  const Var keys = past_length.is_valid() ? add(length, past_length) : length;
  const MaskSource source{.mask = call["key_padding_mask"],
                          .bias = call["attention_bias"],
                          .queries = extent_of(given.q, call.rank(given.q) == 4 ? 2 : 1),
                          .keys = keys,
                          .past = past_length,
                          .num_batch = extent_of(given.q, 0),
                          .batch = given.q.shape()[0],
                          .dtype = given.q.dtype(),
                          .causal = call.attributes().flag("unidirectional")};
  const AttentionMask mask = attention_mask(call, source);
  AttentionOptions options{.mask = mask.mask, .is_causal = mask.is_causal, .scale = attention_scale(call)};
  const bool is_packed = call.rank(given.q) == 3 && call.rank(given.k) == 3 && call.rank(given.v) == 3;
  if (is_packed && !past.keys.is_valid() && !call.wants(1)) {
    options.q_num_heads = options.kv_num_heads = heads;
    return {autograph::attention(given.q, given.k, given.v, options)};
  }
  const KeysValues present = with_past(past, {per_head(call, given.k, heads), per_head(call, given.v, heads)});
  const Var y = autograph::attention(per_head(call, given.q, heads), present.keys, present.values, options);
  return {join_heads(y), present.keys, present.values, Var()};
}

}  // namespace

std::vector<ContribOp> contrib_attention() {
  const AttributeSpec heads = required_attribute("num_heads");
  const AttributeSpec causal = with_default("unidirectional", int64_t{0});
  const AttributeSpec scale = optional_attribute("scale", AttributeType::real);
  const AttributeSpec filter = optional_attribute("mask_filter_value", AttributeType::real);
  const AttributeSpec rotary = with_default("do_rotary", int64_t{0});
  const AttributeSpec shared = with_default("past_present_share_buffer", int64_t{0});
  return {
      contrib_op("Attention", "input, weights, bias?, mask_index?, past?, attention_bias?, past_sequence_length?",
                 "output, present?", "matmul, add, attention", attention_body,
                 {heads, causal, scale, filter, rotary, shared,
                  optional_attribute("qkv_hidden_sizes", AttributeType::integers),
                  optional_attribute("rotary_embedding_dim", AttributeType::integer)}),
      contrib_op("QAttention",
                 "input, weight, bias, input_scale, weight_scale, mask_index?, input_zero_point?, weight_zero_point?, "
                 "past?",
                 "output, present?", "matmul_integer, reduce_sum, mul, add, attention", quantized_attention,
                 {heads, causal, scale, filter, rotary, shared}),
      contrib_op("MultiHeadAttention",
                 "query, key?, value?, bias?, key_padding_mask?, attention_bias?, past_key?, past_value?, "
                 "past_sequence_length?, cache_indirection?",
                 "output, present_key?, present_value?, qk?", "add, attention", multi_head_attention,
                 {heads, causal, scale, filter}),
  };
}

}  // namespace autograph::io
