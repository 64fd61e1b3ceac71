#include "backends/gpu/emit/text/cell_functions.h"

#include <fmt/core.h>

namespace autograph::gpu {

std::string sigmoid_of(const std::string& x) { return fmt::format("(1 / (1 + exp(-({}))))", x); }
std::string tanh_of(const std::string& x) { return fmt::format("tanh({})", x); }

}  // namespace autograph::gpu
