// The lines of a program that called a builder, from the return addresses on the stack.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace autograph {

/// Where the calls that led here return to, innermost first; a dozen at most.
std::vector<uintptr_t> return_places();

/// "train.cpp:27 (train_step)": the innermost of these that is no function of the library. Without debug information
/// the function alone; "" where nothing is known.
std::string line_of(const std::vector<uintptr_t>& places);

}  // namespace autograph
