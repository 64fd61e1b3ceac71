// Activations that take longer as post-ops of oneDNN than in a pass of their own over what was just written, or lose
// digits there, and residuals that oneDNN does not add behind other post-ops.
#pragma once

#include <cstdint>

namespace autograph::simd {

/// y = f(y) for all elements, as exact as post-ops are: gelu to 1e-7 |y|, the others to some units in the last place.
struct ActivationPass {
  enum class Kind : uint8_t {
    none,
    gelu,
    gelu_tanh,
    swish,  ///< y sigmoid(alpha y)
    elu,    ///< y, alpha (exp(y) - 1) below 0
  };
  Kind kind = Kind::none;
  float alpha = 1;
};

/// Runs a pass over `count` elements and adds those of `residual`, where there is one, to what it gives.
void run_activation(const ActivationPass& pass, float* y, int64_t count, const float* residual = nullptr);

}  // namespace autograph::simd
