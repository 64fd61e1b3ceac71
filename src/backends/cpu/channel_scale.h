// A factor and a shift of each output channel right behind a convolution's sum, as a batch norm with given statistics
// has that no pass has folded: kernels that pack weights and bias take them into these, and have nothing to do for
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "backends/cpu/anchored_call.h"
#include "backends/cpu/weights_kernel.h"

namespace autograph {

struct ChannelScale {
  Tensor factors;      ///< Absent: 1.
  Tensor shifts;       ///< Absent: 0.
  size_t num_ops = 0;  ///< That many ops at the head of the epilogue are this.

  /// The form of weights [channels, ...], and of the bias where it is made of both.
  WeightForm of_weights(WeightForm form) const;
  /// The bias, which may be absent, and zeros up to `size` floats.
  WeightForm of_bias(int64_t size) const;

 private:
  std::string name() const;
  Tensor scaled(const Tensor& weights) const;
  Tensor shifted(const Tensor& bias) const;
};

/// What stands at the head of the epilogue of `conv`; nothing where numbers are not known, or would take weights out of
/// the range of f32.
ChannelScale read_channel_scale(const AnchoredCall& conv);

}  // namespace autograph
