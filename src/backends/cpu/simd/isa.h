// The instruction sets that the SIMD kernels were compiled for and that this CPU has.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace autograph::simd {

/// Instruction sets that can be chosen here, best first; the best one is used unless limit_isa() said otherwise.
std::vector<int64_t> isa_levels();

/// Name of a level, for example "AVX3".
std::string_view isa_name(int64_t level);

/// Kernels use this level from now on; 0 = the best one. For tests: no kernel may run meanwhile.
void limit_isa(int64_t level);

}  // namespace autograph::simd
