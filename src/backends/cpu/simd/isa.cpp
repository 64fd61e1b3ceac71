#include "backends/cpu/simd/isa.h"

#include <hwy/highway.h>

namespace autograph::simd {

std::vector<int64_t> isa_levels() { return hwy::SupportedAndGeneratedTargets(); }

std::string_view isa_name(int64_t level) { return hwy::TargetName(level); }

void limit_isa(int64_t level) { hwy::SetSupportedTargetsForTest(level); }

}  // namespace autograph::simd
