// Plans whose kernels and layouts are chosen by costs out of a hat.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "autograph/op_def.h"
#include "autograph/random.h"
#include "runtime/kernel_cost.h"

namespace autograph {

/// Costs between 1 and 100, those of reorders a quarter of that.
class RandomCost : public KernelCost {
 public:
  explicit RandomCost(uint64_t seed) : random_(seed) {}
  bool is_concurrent() const override { return false; }
  std::vector<double> candidates_us(const KernelCatalog&, const KernelCall&,
                                    std::span<const KernelCandidate> candidates) override;
  double reorder_us(const KernelCatalog&, const ReorderCall&) override;

 private:
  double draw_cost() { return std::uniform_real_distribution<double>(1, 100)(random_); }
  Random random_;
};

/// The f32 outputs of `source`, optimised for the CPU with kernels chosen by `cost`; `plan_text` is the plan.
std::vector<Datum> run_with_costs(const Graph& source, const std::vector<Tensor>& inputs, KernelCost& cost,
                                  std::string& plan_text);

}  // namespace autograph
