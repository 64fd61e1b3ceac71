// Costs of kernels where they stand: alone, a call finds its inputs in the caches of the thread that reads them; in a
// network, where the kernels around it have left them. So plans are run as a whole, and what each kernel took there
// replaces what it took alone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cost/measured_cost.h"
#include "runtime/kernel_cost.h"

namespace autograph {

/// For one thread at a time, and for plans of one graph.
class InNetworkCost : public KernelCost {
 public:
  /// `alone` answers for what has not run in the network, and keeps what is to be remembered. `network` names the
  /// graph, its shapes and how it is run. With `goes_on` what was kept when time was over does not count.
  InNetworkCost(MeasuredCost& alone, std::string network, bool goes_on = true);

  bool is_concurrent() const override { return false; }
  void begin_step(size_t step, size_t num_steps) override;
  std::vector<double> candidates_us(const KernelCatalog& catalog, const KernelCall& call,
                                    std::span<const KernelCandidate> candidates) override;
  double reorder_us(const KernelCatalog& catalog, const ReorderCall& call) override;

  /// Step `step` (reorders not counted) took `us` with this candidate; told more than once, the mean counts. Candidates
  /// that have not been asked about have nothing to be compared with, and are passed over.
  void observe(size_t step, const KernelCandidate& candidate, double us);

  /// Have candidates been kept for this network? Then only they are chosen.
  bool is_kept() const { return is_kept_; }
  /// Remembers the candidates of the best plan, by step, and what the whole took. `is_cut`: more plans would have been
  /// run, had there been time.
  void keep(const std::vector<KernelCandidate>& candidates, double whole_us, bool is_cut = false);

 private:
  struct Mean {
    double sum = 0;
    int count = 0;
    double value() const { return sum / count; }
  };
  // What is known about the candidates for a step.
  struct StepCosts {
    std::string op;
    std::map<std::string, double> alone_us;
    std::map<std::string, Mean> observed_us;
  };
  std::string key_of(size_t step, const KernelCandidate& candidate) const;
  std::string key_of_cut() const { return network_ + " cut"; }
  double in_network_over_alone(const std::string& op);
  double compute_in_network_over_alone(const std::string& op) const;

  MeasuredCost& alone_;
  std::string network_;
  bool is_kept_;
  size_t step_ = 0;
  std::map<size_t, StepCosts> steps_;
  std::map<std::string, double> over_alone_;  // by op, until something is observed
};

}  // namespace autograph
