#include "backends/cpu/simd/recurrent/turned_weights.h"

#include <algorithm>

#include "backends/cpu/simd/recurrent/recurrent_cells.h"

namespace autograph::simd {

TurnedWeights::TurnedWeights(int64_t rows, int64_t hidden)
    : rows_(rows), hidden_(hidden), padded_((hidden + gate_width() - 1) / gate_width() * gate_width()) {}

int64_t TurnedWeights::packed_size() const { return packed_gates_size(1, hidden_, rows_); }

int64_t TurnedWeights::scratch_size() const { return (hidden_ + gate_width()) * rows_; }

// The rows of R are the depth of the product: R is turned, then packed as gates are.
void TurnedWeights::pack(const float* r, float* scratch, float* packed) const {
  constexpr int64_t kBlock = 16;
  for (int64_t first = 0; first < rows_; first += kBlock) {
    for (int64_t j = 0; j < hidden_; ++j) {
      for (int64_t k = first; k < std::min(rows_, first + kBlock); ++k) scratch[j * rows_ + k] = r[k * hidden_ + j];
    }
  }
  pack_gates(scratch, 1, hidden_, rows_, scratch + hidden_ * rows_, packed);
}

void TurnedWeights::multiply(const float* packed, const GateFlow& flow, float* product) const {
  multiply_gates({flow.values, flow.stride, flow.count, rows_, packed, padded_ / gate_width(), product, padded_});
}

}  // namespace autograph::simd
