// Reasons that several kernels share for not taking a call.
#pragma once

#include <string>

#include "autograph/kernel.h"

namespace autograph {

/// "" when every tensor of the call is f32 and has elements, else the reason why not.
std::string why_not_f32(const KernelCall& call);

/// "" when every tensor among the inputs has elements, else the reason why not.
std::string why_not_empty(const KernelCall& call);

/// "" when the elements of input 0 can be copied as bytes, else the reason why not.
std::string why_not_bytes(const KernelCall& call);

}  // namespace autograph
