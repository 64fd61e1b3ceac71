// What torch's layers draw their parameters from when nothing else is said.
#pragma once

#include <cstdint>

#include "autograph/nn/init.h"

namespace autograph::nn {

/// Weights of linear layers and convolutions: uniform within 1 / sqrt(fan in).
Init torch_weight();
/// Their biases: the same bound.
Init torch_bias(int64_t fan_in);

}  // namespace autograph::nn
