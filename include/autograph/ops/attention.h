// Typed builders of attention and what belongs to it.
#pragma once

#include <cstdint>

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

/// Options of rotary_embedding().
struct RotaryOptions {
  int64_t num_heads = 0;     ///< Needed when x has rank 3.
  int64_t rotated_size = 0;  ///< Elements of each head to rotate; 0: all.
  bool interleaved = false;  ///< Pairs are neighbours instead of halves.
};

/// Rotates pairs of elements of x, [batch, heads, length, size] or [batch, length, heads * size], by position. The
/// caches are [positions, n/2] with position_ids [batch, length], else [batch, length, n/2].
Var rotary_embedding(Var x, Var cosines, Var sines, Var position_ids = {}, RotaryOptions options = {});

}  // namespace autograph
