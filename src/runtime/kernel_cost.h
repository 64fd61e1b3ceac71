// What running a kernel takes, asked when kernels and layouts are chosen.
#pragma once

#include "runtime/kernel_catalog.h"

namespace autograph {

/// Estimates; see tune/ for measurements.
class KernelCost {
 public:
  virtual ~KernelCost() = default;
  /// Told before the offers of a step are asked about.
  virtual void begin_step(size_t step, size_t num_steps) {
    static_cast<void>(step);
    static_cast<void>(num_steps);
  }
  /// Microseconds of one run of an offer for a call.
  virtual double offer_us(const KernelCatalog& catalog, const KernelCall& call, const Offer& offer) {
    static_cast<void>(catalog);
    static_cast<void>(call);
    return offer.variant.cost_us;
  }
  /// Microseconds of one reorder.
  virtual double reorder_us(const KernelCatalog& catalog, const ReorderCall& call);
};

}  // namespace autograph
