// The activation functions of recurrent cells as text.
#pragma once

#include <string>

#include "backends/gpu/emit/text/writer.h"
#include "ops/recurrent/activation_functions.h"

namespace autograph::gpu {

/// An expression for `function` of `x`, both of the compute type of `dtype`, a float. Functions that it calls are added
/// to `writer`.
std::string activation_text(Writer& writer, const NamedActivation& function, DType dtype, const std::string& x);

}  // namespace autograph::gpu
