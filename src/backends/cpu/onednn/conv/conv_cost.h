// The time of a convolution without measuring it: a rule fitted to measurements.
#pragma once

#include <string_view>

#include "autograph/op_def.h"
#include "backends/cpu/anchored_call.h"

namespace autograph::onednn {

/// Microseconds that `implementation` (oneDNN's name for it) takes for a convolution that writes `layout`, on `threads`
/// threads. `cost`: of the convolution alone; `speedup`: of its products over those of f32.
double conv_cost_us(const AnchoredCall& conv, const OpCost& cost, std::string_view implementation, Layout layout,
                    int threads, double speedup = 1);

}  // namespace autograph::onednn
