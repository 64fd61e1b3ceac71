// In what numbers kernels compute inside.
#pragma once

#include <cstdint>
#include <string_view>

namespace autograph {

/// In what convolutions and matrix products may multiply.
enum class Precision : uint8_t {
  f32,
  /// Operands are rounded to bf16 (8 significant bits) where that is faster; sums, all else and all tensors outside
  /// stay as they are. DeviceError where the processor has no instructions for it.
  bf16
};

/// "f32".
std::string_view to_string(Precision precision);

/// Throws ValueError with the nearest name when there is no such precision.
Precision precision_named(std::string_view name);

}  // namespace autograph
