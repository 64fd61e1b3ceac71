// The additive bias of attention scores: mask input, causal frontier, sliding window and padded keys together.
#pragma once

#include <cstdint>
#include <vector>

#include "autograph/op_def.h"

namespace autograph {

/// Extents of the score matrices.
struct ScoreDims {
  int64_t batch;
  int64_t heads;
  int64_t queries;
  int64_t keys;  ///< Past and present ones.
};

/// Bias of every score, one row of `keys` at a time.
class AttentionBias {
 public:
  /// `mask` is input 3 of an attention call, `valid_keys` input 6; both may be absent. `past` counts the keys that come
  /// before the first new one. Throws ValueError when valid_keys has counts beyond 0..keys.
  AttentionBias(const OpCall& call, ScoreDims dims, int64_t past);

  /// Fills `row` (one element per key) for a query; returns false when no key may be attended.
  bool fill(int64_t b, int64_t head, int64_t query, std::vector<double>& row) const;

 private:
  bool is_visible(int64_t b, int64_t query, int64_t key) const;

  ScoreDims dims_;
  int64_t past_;
  bool causal_;
  int64_t left_window_;
  int64_t right_window_;
  bool has_mask_ = false;
  int64_t mask_keys_ = 0;              // keys that the mask covers; the others are hidden
  std::vector<double> mask_;           // additive form
  std::vector<int64_t> mask_offsets_;  // over [batch, heads, queries, mask_keys]
  std::vector<int64_t> valid_keys_;    // per batch; empty: all
};

}  // namespace autograph
