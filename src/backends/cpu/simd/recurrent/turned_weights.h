// Weights R as gradients are multiplied with them: from the rows of gates back to hidden elements.
#pragma once

#include <cstdint>

namespace autograph::simd {

/// Rows of gates, `stride` elements apart.
struct GateFlow {
  const float* values;
  int64_t stride;
  int64_t count;
};

/// Some rows of R, [rows, hidden]. The memory is the caller's.
class TurnedWeights {
 public:
  TurnedWeights(int64_t rows, int64_t hidden);

  /// Hidden elements in whole blocks: what a row of a product takes.
  int64_t padded() const { return padded_; }
  int64_t packed_size() const;
  /// What pack() needs besides.
  int64_t scratch_size() const;
  void pack(const float* r, float* scratch, float* packed) const;
  /// product [count, padded()] = flow [count, rows] R.
  void multiply(const float* packed, const GateFlow& flow, float* product) const;

 private:
  int64_t rows_, hidden_, padded_;
};

}  // namespace autograph::simd
