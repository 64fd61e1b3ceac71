// Checks of kernels that read and write bytes, in all layouts that they have.
#pragma once

#include "autograph/random.h"
#include "support/kernels/run_kernel.h"

namespace autograph {

/// The call of the only node of a graph: its constants, and any bytes for the inputs of the graph.
OpSample call_with_bytes(const Graph& graph, Random& random);

/// Every variant of `def`, row-major or with channels last, gives the outputs of the definition for a call of `fused`
/// up to a step (more_than_a_step()), and writes nothing behind them. The kernel must take the call, unless it leaves
/// it to floats because those are faster.
void expect_every_form_of_bytes(const KernelDef& def, const OpSample& sample, const KernelSetup& setup);

}  // namespace autograph
