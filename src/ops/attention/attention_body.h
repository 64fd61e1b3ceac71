// Attention and its gradient in other ops, which keep the weights of all queries and keys: for devices without a kernel
// of their own, for files, and for gradients of gradients.
#pragma once

#include <vector>

#include "autograph/op_def.h"

namespace autograph {

/// x [batch, length, heads * size] as [batch, heads, length, size]; as it is where it has this rank.
Var spread_heads(const Var& x, int64_t heads);
/// The way back: `gradient` [batch, heads, length, size] in the layout of x.
Var like_heads_of(const Var& gradient, const Var& x);

/// A mask as what is added to scores, in the dtype of `like`: minus infinity where a bool hides, and for the keys from
/// the end of the mask to `keys`. Throws UnsupportedError where these extents are not known.
Var additive_mask(const Var& mask, const Var& like, const Dim& keys);
/// Has a call a causal frontier or a window?
bool hides_by_position(const Attributes& attributes);
/// Which keys these let a query see, by the `distance` from the key to the query (i64); invalid without any.
Var seen_from(const Var& distance, const Attributes& attributes);

/// The body of tiled_attention. Throws UnsupportedError where ranks, heads or lengths that it needs are not known.
std::vector<Var> tiled_attention_body(DecomposeContext& context);
/// The body of tiled_attention_grad; likewise.
std::vector<Var> tiled_attention_grad_body(DecomposeContext& context);

}  // namespace autograph
