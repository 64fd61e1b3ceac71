// Weights of models that tests make.
#pragma once

#include <cstdint>
#include <utility>

#include "autograph/random.h"
#include "ops/sample.h"

namespace autograph {

/// Numbers within 0.5 of 0, the same for the same seed.
inline Tensor drawn_weights(Dims dims, uint64_t seed) {
  Random random(seed);
  return draw_tensor(random, DType::f32, std::move(dims), -0.5, 0.5);
}

}  // namespace autograph
