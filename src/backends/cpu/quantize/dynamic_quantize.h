// Quantization with a scale that is taken from the data.
#pragma once

#include "autograph/kernel.h"

namespace autograph {

KernelDef dynamic_quantize_kernel();

}  // namespace autograph
