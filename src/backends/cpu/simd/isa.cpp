#include "backends/cpu/simd/isa.h"

#include <atomic>

#include <hwy/highway.h>

namespace autograph::simd {
namespace {

bool has_vnni_of_cpu() {
#if HWY_ARCH_X86
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512vnni") != 0;
#else
  return false;
#endif
}

std::atomic<bool>& wide_vnni() {
  static std::atomic<bool> has = has_vnni_of_cpu();
  return has;
}

}  // namespace

std::vector<int64_t> isa_levels() { return hwy::SupportedAndGeneratedTargets(); }

std::string_view isa_name(int64_t level) { return hwy::TargetName(level); }

void limit_isa(int64_t level) { hwy::SetSupportedTargetsForTest(level); }

bool has_wide_vnni() { return wide_vnni().load(std::memory_order_relaxed); }

void forbid_wide_vnni(bool forbid) { wide_vnni() = !forbid && has_vnni_of_cpu(); }

}  // namespace autograph::simd
