// What the kernels that multiply in bf16 share.
#pragma once

#include <string_view>

#include "autograph/graph.h"
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/onednn/primitive_kernel.h"

namespace autograph::onednn {

/// How much faster an implementation of bf16 multiplies than one of f32; 1 for those of f32.
double speedup(std::string_view implementation);

/// Microseconds for rounding a tensor to bf16; 0 where the operands stay f32.
double conversion_us(const Type& type, DataType operands, int threads);

}  // namespace autograph::onednn
