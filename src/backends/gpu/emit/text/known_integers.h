// Integers that an op reads from an input, where they are known when a kernel is made.
#pragma once

#include <optional>
#include <vector>

#include "autograph/kernel.h"

namespace autograph::gpu {

/// The elements of input `slot`; nothing when they are computed, or the input is not given.
inline std::optional<std::vector<int64_t>> known_integers(const KernelCall& call, size_t slot) {
  const Tensor* constant = call.constant(slot);
  if (!constant) return std::nullopt;
  return constant->to_i64();
}

}  // namespace autograph::gpu
