// Control flow as a step like any other: a kernel that has the plans of its bodies, whose working memory is part of the
// arena of the plan around them.
#pragma once

#include <memory>

#include "autograph/kernel.h"
#include "engine/executable.h"
#include "ops/control/nested_run.h"

namespace autograph {

/// Finds the compiled graph of an attribute.
using FindNested = FunctionRef<std::shared_ptr<Executable::Impl>(const GraphRef&)>;

/// The kernel for a node whose op runs nested graphs; null where something in it is only known while running, or the
/// device has memory of its own, in which conditions cannot be looked at.
std::unique_ptr<Kernel> make_nested_kernel(const KernelCall& call, const Device& device, FindNested find);

}  // namespace autograph
