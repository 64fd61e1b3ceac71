// Convolutions in groups of fewer channels than lanes.
#include "backends/cpu/simd/conv/grouped_conv_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/conv/grouped_conv_small_groups.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/conv/grouped_conv_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

void compute_small_groups(const GroupedConvTask& task) { compute_rows<Source::own_group>(task); }

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {

HWY_EXPORT(compute_small_groups);

void run_small_groups(const GroupedConvTask& task) { HWY_DYNAMIC_DISPATCH(compute_small_groups)(task); }

}  // namespace autograph::simd
#endif  // HWY_ONCE
