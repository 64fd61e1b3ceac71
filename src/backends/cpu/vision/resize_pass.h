// Resizing f32 along one axis: every output element mixes a few inputs of its line along the axis.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/vision/resize_grid.h"

namespace autograph {

/// out[row][o][i] = sum over taps t of weight[o][t] * in[row][index[o][t]][i].
class ResizePass {
 public:
  /// Of `rows` blocks of [axis.in, inner] elements; what lies outside of the region becomes `outside`.
  ResizePass(const Attributes& attributes, const ResizeAxis& axis, int64_t rows, int64_t inner);
  void run(const float* in, float* out, int threads) const;
  int64_t outputs() const { return rows_ * out_extent_ * inner_; }
  /// Multiplications.
  int64_t work() const { return outputs() * taps_; }

 private:
  void run_lines(const float* in, float* out, int64_t begin, int64_t end) const;

  int64_t rows_, inner_, in_extent_, out_extent_;
  int64_t taps_ = 2;            // of one output; even
  std::vector<int32_t> index_;  // [taps][out]: neighbouring outputs are computed together
  std::vector<float> weight_;   // the same
  std::vector<int64_t> extrapolated_;
  float outside_;
};

}  // namespace autograph
