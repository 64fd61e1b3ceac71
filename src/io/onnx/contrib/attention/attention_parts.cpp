#include "io/onnx/contrib/attention/attention_parts.h"

#include <algorithm>

namespace autograph::io {
namespace {

// Largest finite number of the dtype.
double largest(DType dtype) { return dtype == DType::f16 ? 65504.0 : std::numeric_limits<float>::max(); }

// The first `batch` elements, and the next ones, 0 where there are none: ends of keys, and starts.
std::pair<Var, Var> ends_and_starts(const ContribCall& call, const MaskSource& source) {
  const Var mask = source.mask;
  const Dim& count = mask.shape()[0];
  if (count.same_as(source.batch)) return {mask, Var()};
  if (count.is_known() && source.batch.is_known()) {
    if (count.value() == 2 * source.batch.value()) {
      const std::vector<Var> halves = split_evenly(mask, 2, 0);
      return {halves[0], halves[1]};
    }
    call.refuse("mask", "ends of keys of shape " + to_string(mask.type()) + " are not supported");
  }
  const OpDef& slice_op = get_op("slice");
  const Var zero = call.constant(Tensor::vector({0}));
  const Var twice = add(source.num_batch, source.num_batch);
  const Var padded = concat({mask, constant_of_shape(source.num_batch, Tensor::of<int32_t>({1}, {0}))}, 0);
  return {apply(slice_op, {padded, zero, source.num_batch, zero}),
          apply(slice_op, {padded, source.num_batch, twice, zero})};
}

// Keys before the ends, and not before the starts: bool [batch, 1, 1, keys].
Var between(const ContribCall& call, const MaskSource& source) {
  const auto [ends, starts] = ends_and_starts(call, source);
  const Var position = as_dtype(counted(call, source.keys), ends.dtype());
  const auto column = [&](Var v) { return reshape(v, std::vector<int64_t>{-1, 1, 1, 1}); };
  const Var before = less(position, column(ends));
  return starts.is_valid() ? logical_and(before, greater_or_equal(position, column(starts))) : before;
}

// bool, broadcasts to [batch, heads, queries, keys].
Var visible_keys(const ContribCall& call, const MaskSource& source) {
  const Var mask = source.mask;
  const auto positive = [&] { return greater(mask, scalar_like(mask, 0)); };
  switch (call.rank(mask)) {
    case 1: return between(call, source);
    case 2: return unsqueeze(positive(), {1, 2});
    case 3: return unsqueeze(positive(), {1});
    default: call.refuse("mask", to_string(mask.type()) + " is not supported");
  }
}

}  // namespace

Var split_heads(Var x, int64_t heads) {
  return transpose(reshape(x, std::vector<int64_t>{0, 0, heads, -1}), {0, 2, 1, 3});
}

Var join_heads(Var x) { return reshape(transpose(x, {0, 2, 1, 3}), std::vector<int64_t>{0, 0, -1}); }

KeysValues with_past(const KeysValues& past, const KeysValues& fresh) {
  if (!past.keys.is_valid()) return fresh;
  return {concat({past.keys, fresh.keys}, 2), concat({past.values, fresh.values}, 2)};
}

Var causal_frontier(const ContribCall& call, Var queries, Var keys, Var past) {
  Var query = counted(call, queries);
  if (past.is_valid()) query = add(query, past);
  return less_or_equal(counted(call, keys), unsqueeze(query, {1}));
}

AttentionMask attention_mask(const ContribCall& call, const MaskSource& source) {
  if (!source.mask.is_valid()) {
    if (!source.causal) return {source.bias, false};
    if (!source.past.is_valid()) return {source.bias, true};
  }
  Var sum = source.bias;
  const auto number = [&](double value) {
    return call.constant(source.dtype == DType::f16 ? Tensor::scalar<Half>(Half(static_cast<float>(value)))
                                                    : Tensor::scalar<float>(static_cast<float>(value)));
  };
  const double filter =
      std::max<double>(call.attributes().get_or("mask_filter_value", -10000.0F), -largest(source.dtype));
  if (source.mask.is_valid()) {
    const Var hidden = where(visible_keys(call, source), number(0), number(filter));
    sum = sum.is_valid() ? add(hidden, sum) : hidden;
  }
  if (!source.causal) return {sum, false};
  // Later keys weigh less than any that the mask hides.
  const Var frontier = causal_frontier(call, source.queries, source.keys, source.past);
  if (!sum.is_valid()) return {frontier, false};
  return {where(frontier, sum, number(-largest(source.dtype))), false};
}

float attention_scale(const ContribCall& call) { return call.attributes().get_or("scale", 0.0F); }

}  // namespace autograph::io
