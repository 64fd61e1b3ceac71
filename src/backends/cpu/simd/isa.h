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

/// Does one instruction add up four products of bytes, or two of 16-bit numbers, in each of 16 lanes (AVX-512 VNNI)?
/// CPUs with such instructions may lack other things of the next target that Highway knows above AVX3.
bool has_wide_vnni();

/// has_wide_vnni() is false from now on, or what the CPU has. For tests, as limit_isa().
void forbid_wide_vnni(bool forbid);

}  // namespace autograph::simd
