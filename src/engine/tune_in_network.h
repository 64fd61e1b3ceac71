// Choosing kernels by what they take in the network: whole plans are run, what their kernels took there becomes their
// cost, and kernels are chosen again, until no choice is new. The plan that is fastest as a whole is kept.
#pragma once

#include <memory>
#include <string>

#include "autograph/compile.h"
#include "autograph/device.h"
#include "autograph/verify.h"
#include "cost/in_network_cost.h"
#include "runtime/compiled_plan.h"
#include "runtime/launchable.h"

namespace autograph {

/// Names a graph with its shapes and attributes and how it is run, whatever its weights.
std::string network_key(const Graph& graph, const CompileOptions& options, int threads);

/// Is a network among the times, as tune_in_network() keeps it?
bool has_network(const KernelTimes& times);

/// Compiles the plan that `cost` has kept; where it has none, looks for the fastest and keeps it. Graphs that cannot be
/// run here on seeded inputs get the kernels that are the fastest each by itself. `plan_options.cost` is not used.
std::shared_ptr<const CompiledPlan> tune_in_network(const Device& device, const std::shared_ptr<const Graph>& graph,
                                                    const KnownValues& known, PlanOptions plan_options,
                                                    RunOptions run_options, InNetworkCost& cost,
                                                    const CompileOptions& options);

}  // namespace autograph
