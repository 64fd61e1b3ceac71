// Costs of nodes on a processor by estimate: the roofline. For when nothing was measured.
#pragma once

#include "cost/cost_model.h"

namespace autograph {

/// What the estimate knows of a processor. Units: 1e9 per second.
struct AnalyticMachine {
  int threads = 2;               ///< That a run has.
  double thread_gflops = 60;     ///< Peak of one thread in f32.
  double gflops_scaling = 0.95;  ///< What each further thread adds, as a part of the first.
  double thread_gb_per_s = 12;   ///< What one thread moves.
  double gb_per_s = 20;          ///< What all threads together move at most.
  double launch_us = 0.5;        ///< Of every node.
  double fork_us = 2;            ///< To hand work to further threads and wait for them.
  double anchor_part = 0.7;      ///< Part of the peak that products and convolutions reach on long sums.
  double anchor_half = 8;        ///< Length of the sums at which they reach half of that.
  double other_part = 0.15;      ///< Part of the peak that other ops reach.
};

/// See above. A node takes at least as long as its flops and its bytes take; few are computed by one thread, because
/// `fork_us` is more than what others would save.
class AnalyticCost : public CostModel {
 public:
  explicit AnalyticCost(AnalyticMachine machine = {}) : machine_(machine) {}
  double node_us(const Graph& graph, NodeId node, int threads) override;
  int threads() const override { return machine_.threads; }

 private:
  AnalyticMachine machine_;
};

}  // namespace autograph
