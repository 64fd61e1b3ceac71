// Typed builders of attention and what belongs to it.
#pragma once

#include <cstdint>
#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// What attention() takes besides its three operands.
struct AttentionOptions {
  Var mask = {};             ///< Broadcasts to [batch, q heads, queries, keys]; bool hides where false, others add.
  bool is_causal = false;    ///< Hide keys that come after the query.
  int64_t q_num_heads = 0;   ///< Heads of q; needed when it has rank 3.
  int64_t kv_num_heads = 0;  ///< Heads of k and v; needed when they have rank 3.
  float scale = 0.0f;        ///< Factor of the scores; 0: 1 / sqrt(head size).
};

/// softmax(scale * q k^T + bias) v for every head. q is [batch, heads, queries, size], k and v likewise; or all three
/// are [batch, length, heads * size]. The result is like q with the head size of v.
Var attention(Var q, Var k, Var v, AttentionOptions options = {});

/// attention() for training: {y, logarithms of the sums of exp(score), [batch, q heads, queries]}. `attributes` as
/// attention has them; without the heads, q, k and v have rank 4.
std::vector<Var> tiled_attention(Var q, Var k, Var v, Var mask = {}, Attributes attributes = {});
/// {gq, gk, gv} of tiled_attention() from what flows into y. `delta` [batch, q heads, queries] is gy * y summed up over
/// a head, less what flows into `log_sum_exp`. With `with_mask` also what flows into the mask, [batch of the mask,
/// q heads, queries, keys of the mask].
std::vector<Var> tiled_attention_grad(Var q, Var k, Var v, Var gy, Var log_sum_exp, Var delta, Var mask = {},
                                      Attributes attributes = {}, bool with_mask = false);

/// Options of rotary_embedding().
struct RotaryOptions {
  int64_t num_heads = 0;     ///< Needed when x has rank 3.
  int64_t rotated_size = 0;  ///< Elements of each head to rotate; 0: all.
  bool interleaved = false;  ///< Pairs are neighbours instead of halves.
};

/// Rotates pairs of elements of x, [batch, heads, length, size] or [batch, length, heads * size], by position. The
/// caches are [positions, n/2] with position_ids [batch, length], else [batch, length, n/2].
Var rotary_embedding(Var x, Var cosines, Var sines, Var position_ids = {}, RotaryOptions options = {});
/// attention() whose scores pass through graphs: `score_mod` before and `prob_mod` after the softmax, each from
/// [batch, heads, queries, keys] (and `captured`) to the same; null: as they are. scale 0: 1 / sqrt(head size).
Var flex_attention(Var q, Var k, Var v, GraphRef score_mod, GraphRef prob_mod = nullptr,
                   const std::vector<Var>& captured = {}, float scale = 0);
/// Attention as a recurrence with a state: query [batch, length, heads * d_k], key and value alike: {y, state [batch,
/// kv heads, d_k, d_v]}. `attributes`: q_num_heads and kv_num_heads, update_rule, scale.
std::vector<Var> linear_attention(Var query, Var key, Var value, Attributes attributes, Var state = {}, Var decay = {},
                                  Var beta = {});

}  // namespace autograph
