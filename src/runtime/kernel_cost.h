// What running a kernel takes, asked when kernels and layouts are chosen.
#pragma once

#include <span>
#include <vector>

#include "autograph/kernel.h"

namespace autograph {

/// Estimates; see tune/ for measurements.
class KernelCost {
 public:
  virtual ~KernelCost() = default;
  /// May it be asked from several threads at once?
  virtual bool is_concurrent() const { return true; }
  /// Told before the candidates of a step are asked about.
  virtual void begin_step(size_t step, size_t num_steps) {
    static_cast<void>(step);
    static_cast<void>(num_steps);
  }
  /// Microseconds of one run of each candidate for a call, parallel to `candidates`.
  virtual std::vector<double> candidates_us(const KernelCatalog& catalog, const KernelCall& call,
                                            std::span<const KernelCandidate> candidates) {
    static_cast<void>(catalog);
    static_cast<void>(call);
    std::vector<double> costs;
    for (const KernelCandidate& candidate : candidates) costs.push_back(candidate.variant.cost_us);
    return costs;
  }
  /// Microseconds of one reorder.
  virtual double reorder_us(const KernelCatalog& catalog, const ReorderCall& call);
};

}  // namespace autograph
