// What nodes take on a device, asked of its kernels: the cheapest offer for the node by itself, measured or estimated.
#pragma once

#include <functional>
#include <unordered_map>

#include "autograph/hash.h"
#include "cost/cost_model.h"
#include "runtime/kernel_catalog.h"
#include "runtime/kernel_cost.h"

namespace autograph {

/// What CatalogCost asks.
struct CatalogCostOptions {
  const KernelCatalog& catalog;
  KernelCost& cost;                   ///< Measurements, or estimates.
  int threads = 1;                    ///< Of a run.
  bool exact = false;                 ///< See KernelCall::exact.
  int (*set_threads)(int) = nullptr;  ///< Makes the calling thread prepare kernels for that many; null: no need.
  /// May something be measured now? When not, and for what no measurement exists yet, kernels estimate. Null: yes.
  std::function<bool()> may_measure = nullptr;
};

/// See above. Answers are kept: equal calls are asked about once.
class CatalogCost : public CostModel {
 public:
  explicit CatalogCost(const CatalogCostOptions& options) : options_(options) {}
  double node_us(const Graph& graph, NodeId node, int threads) override;
  int threads() const override { return options_.threads; }
  /// Different calls asked about so far.
  size_t num_calls() const { return known_.size(); }

 private:
  double ask(const Graph& graph, const Node& node, int threads);

  CatalogCostOptions options_;
  std::unordered_map<Hash128, double> known_;
};

}  // namespace autograph
