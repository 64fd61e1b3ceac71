// concat and split along an axis with nothing but extents of 1 before it: the parts lie in the whole one behind the
// other. Where the memory plan put each in its place there is nothing to do, others are copied.
#pragma once

#include "autograph/kernel.h"

namespace autograph::gpu {

/// "" for such a call of concat or split, else the reason why not.
std::string why_not_parts(const KernelCall& call);

/// Kernels for both ops, on any device whose streams have a memory.
std::vector<KernelDef> parts_kernels();

}  // namespace autograph::gpu
