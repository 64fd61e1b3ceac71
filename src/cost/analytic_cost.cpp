#include "cost/analytic_cost.h"

#include <algorithm>

#include "cost/node_work.h"

namespace autograph {
namespace {

// Microseconds of the work alone on this many threads.
double work_us(const AnalyticMachine& machine, const NodeWork& work, int threads) {
  const double reached = work.op->traits.anchor
                             ? machine.anchor_part * work.inner() / (work.inner() + machine.anchor_half)
                             : machine.other_part;
  const double gflops = machine.thread_gflops * (1 + (threads - 1) * machine.gflops_scaling) * reached;
  const double gb_per_s =
      std::min(machine.thread_gb_per_s * threads, std::max(machine.gb_per_s, machine.thread_gb_per_s));
  const double compute_us = work.flops > 0 ? work.flops / (gflops * 1e3) : 0;
  return std::max(compute_us, work.bytes / (gb_per_s * 1e3));
}

}  // namespace

double AnalyticCost::node_us(const Graph& graph, NodeId node, int threads) {
  if (is_true_view(graph, node) || is_weight_only(graph, node)) return 0;
  const NodeWork work = node_work(graph, node);
  double us = work_us(machine_, work, 1);
  if (threads > 1) us = std::min(us, machine_.fork_us + work_us(machine_, work, threads));
  return machine_.launch_us + us;
}

}  // namespace autograph
