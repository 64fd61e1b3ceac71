// The weight of the critical path, from what graphs took on this device.
#pragma once

#include <optional>
#include <span>

#include "cost/measurement_cache.h"

namespace autograph {

/// Alpha of C_E = alpha * critical path + sum (AutoGraph, AAAI 2023), as a / b of the least squares fit
/// latency ~ a * critical path + b * sum over relative errors, with a and b not below 0; at most kMaxAlpha. Nothing
/// when there are too few samples, or none that tell the two apart.
std::optional<double> fit_alpha(std::span<const LatencySample> samples);

constexpr double kMaxAlpha = 8;

}  // namespace autograph
