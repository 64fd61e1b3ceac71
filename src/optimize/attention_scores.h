// The core of an attention pattern: softmax(scale * q k + masks) v, in the ways that models spell it.
#pragma once

#include <optional>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// One mask on the scores.
struct ScoreMask {
  ValueId value;  ///< What is added; with `is_condition` a bool tensor that chooses instead.
  bool is_condition = false;
  bool hides_when = false;  ///< Conditions: which of their elements hide.
  ValueId hidden = {};      ///< Conditions: the scalar constant, far below every score, that a hidden score becomes.
};

/// All tensors have the same rank.
struct AttentionScores {
  ValueId q;                     ///< [..., queries, size]
  ValueId k;                     ///< [..., size, keys]
  ValueId v;                     ///< [..., keys, value size]
  double scale = 1;              ///< Factor of the scores.
  std::vector<ScoreMask> masks;  ///< In the order in which they are applied.
  bool zeroes_nan = false;       ///< Rows of weights that are NaN, as without any key to see, become 0.
  ValueId scores;                ///< q k.
  /// [batch, heads] where scores [batch * heads, ...] were given that form to add a mask; else empty.
  std::vector<Dim> split_batch;
  ValueId result;  ///< [..., queries, value size]
};

/// The pattern around the softmax `node`; nothing when there is none, or when a value inside it is read elsewhere.
std::optional<AttentionScores> match_attention_scores(const Graph& graph, const Node& node);

}  // namespace autograph
