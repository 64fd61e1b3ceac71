// Convolutions in groups of as many channels as lanes, or more.
#include "backends/cpu/simd/conv/grouped_conv_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/conv/grouped_conv_large_groups.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/conv/grouped_conv_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

void compute_large_groups(const GroupedConvTask& task) { compute_rows<Source::one_channel>(task); }

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {

HWY_EXPORT(compute_large_groups);

void run_large_groups(const GroupedConvTask& task) { HWY_DYNAMIC_DISPATCH(compute_large_groups)(task); }

}  // namespace autograph::simd
#endif  // HWY_ONCE
