// The functions of recurrent cells as text.
#pragma once

#include <string>

namespace autograph::gpu {

/// The two that gates have as a rule, as expressions.
std::string sigmoid_of(const std::string& x);
std::string tanh_of(const std::string& x);

}  // namespace autograph::gpu
