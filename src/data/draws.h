// Random numbers of loaders: functions of the seed, the epoch and the sample, whoever asks for them and when.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/random/philox.h"

namespace autograph {

/// Epochs are 0 to kMaxEpoch.
inline constexpr int64_t kMaxEpoch = 0xFFFF'FFFE;

/// The numbers of one purpose for one sample in one epoch.
class Draws {
 public:
  /// Purposes are 0 to 4095: places of transforms, and kOrderPurpose.
  Draws(uint64_t seed, int64_t epoch, int64_t sample, uint32_t purpose);

  /// 64 random bits.
  uint64_t bits();
  /// In [0, 1), with 53 random bits.
  double uniform();
  /// 0 to count - 1; each is as likely as the others up to count / 2^64.
  int64_t below(int64_t count);
  /// Mean 0, variance 1.
  double normal();
  /// Beta(alpha, alpha), alpha > 0.
  double beta(double alpha);

 private:
  double log_gamma_variate(double shape);

  PhiloxStream stream_;
  uint32_t block_;
};

inline constexpr uint32_t kOrderPurpose = 4095;

/// 0 to size - 1 in the order of an epoch: every order is equally likely.
std::vector<int64_t> draw_order(int64_t size, uint64_t seed, int64_t epoch);

}  // namespace autograph
