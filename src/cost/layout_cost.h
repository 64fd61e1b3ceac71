// What kernels and layouts that are chosen together add to what nodes take by themselves: alone each has its fastest
// kernel, in a plan the one that costs least with the reorders around it.
#pragma once

#include <vector>

#include "runtime/choose_kernels.h"

namespace autograph {

/// Of a node in a plan.
struct LayoutCost {
  double share = 1;  ///< What the kernel that was chosen takes over what the fastest one takes, by the same costs.
  double reorders_us = 0;  ///< Of reorders in front of it that nobody needs before, and behind it.

  /// What it takes, where it takes `us` by itself.
  double apply(double us) const { return us * share + reorders_us; }
};

/// By node of a graph behind all passes. Makes no kernels and runs nothing.
std::vector<LayoutCost> layout_costs(const Graph& finished, const ChooseOptions& options);

}  // namespace autograph
