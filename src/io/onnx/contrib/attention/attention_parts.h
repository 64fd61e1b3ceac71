// What the contrib ops of attention share: heads, caches, masks.
#pragma once

#include "io/onnx/contrib/body.h"

namespace autograph::io {

/// [batch, length, heads * size] as [batch, heads, length, size], and back.
Var split_heads(Var x, int64_t heads);
Var join_heads(Var x);

/// Keys and values for one call of attention.
struct KeysValues {
  Var keys, values;  ///< [batch, heads, length, size]
};

/// The past in front of new keys and values; without a past these are all there is.
KeysValues with_past(const KeysValues& past, const KeysValues& fresh);

/// Masks of ONNX Runtime hide a key by adding `mask_filter_value`, so that queries which see nothing weigh all keys
/// alike.
struct MaskSource {
  Var mask;       ///< i32: key ends [batch], ends and starts [2 batch], [batch, keys] or [batch, queries, keys].
  Var bias;       ///< Added to the scores: [batch or 1, heads or 1, queries, keys].
  Var queries;    ///< i64 [1]: their number.
  Var keys;       ///< i64 [1]: their number, with the past.
  Var past;       ///< i64 [1]: keys before the first query; Var(): none.
  Var num_batch;  ///< i64 [1]: the number of sequences, and as the type tells it.
  Dim batch;
  DType dtype = DType::f32;  ///< That of the scores.
  bool causal = false;
};

/// What the attention op is told: a mask, and whether it hides later keys itself.
struct AttentionMask {
  Var mask;
  bool is_causal = false;
};
AttentionMask attention_mask(const ContribCall& call, const MaskSource& source);

/// bool [queries, keys]: does the key come no later than the query?
Var causal_frontier(const ContribCall& call, Var queries, Var keys, Var past);

/// The attribute `scale`; 0 and missing: 1 / sqrt(size).
float attention_scale(const ContribCall& call);

}  // namespace autograph::io
