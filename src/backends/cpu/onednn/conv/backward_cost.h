// The time of oneDNN's backward convolutions without measuring it.
#pragma once

#include <string_view>

#include "autograph/layout.h"
#include "autograph/op_def.h"

namespace autograph::onednn {

/// Microseconds that `implementation` (oneDNN's name for it) takes for work of this cost on tensors in `layout`.
double backward_cost_us(const OpCost& cost, std::string_view implementation, Layout layout, int threads);

}  // namespace autograph::onednn
