// What nodes take on a device, asked of its kernels: the most promising candidates for the node by itself, measured or
// estimated. Where both are known for calls of an op, estimates of its other calls are corrected by their ratio, so
// that a graph of which a part was measured can be compared with one of which another part was.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograph/hash.h"
#include "autograph/kernel.h"
#include "device/host_threads.h"
#include "device/kernel_judge.h"
#include "optimize/cost/cost_model.h"
#include "runtime/kernel_cost.h"

namespace autograph {

/// What CatalogCost asks.
struct CatalogCostOptions {
  const KernelCatalog& catalog;
  KernelCost& cost;                                       ///< Measurements, or estimates.
  int threads = 1;                                        ///< Of a run.
  bool exact = false;                                     ///< See KernelCall::exact.
  const HostThreads& host_threads = HostThreads::none();  ///< Of the device.
  /// May something that takes about so many seconds be measured now? When not, kernels estimate, and are asked again
  /// when it may. Null: yes.
  std::function<bool(double seconds)> may_measure = nullptr;
  KernelJudge* judge = nullptr;  ///< Candidates that it knows to be wrong are none. Null: all are right.
};

/// Answers are kept: equal calls are asked about once.
class CatalogCost : public CostModel {
 public:
  explicit CatalogCost(const CatalogCostOptions& options) : options_(options) {}
  double node_us(const Graph& graph, NodeId node, int threads) override;
  /// Measures the calls of a graph as long as it may, by their share of what all are estimated to take, the largest
  /// first: where that ends early, what was measured is what matters. What is left is estimated by it.
  void measure(const Graph& graph, int threads);
  /// Spent with measuring kernels so far, or with asking what is known of them.
  double seconds_measured() const { return seconds_measured_; }
  int threads() const override { return options_.threads; }

 private:
  struct Answer {
    double us = 0;
    bool is_measured = false;
    double estimate_us = 0;         // of the best candidate
    double seconds_to_measure = 0;  // by that estimate
  };
  // How measurements of an op compare with its estimates.
  struct Correction {
    double log_sum = 0;
    double count = 0;
  };
  // Calls of a graph that are equal and were not measured.
  struct Unmeasured {
    NodeId node;
    Answer* answer = nullptr;
    double sum_us = 0;  // what all are estimated to take
  };
  using UnmeasuredByOp = std::map<std::string_view, std::vector<Unmeasured>>;
  UnmeasuredByOp unmeasured(const Graph& graph, int threads);
  std::optional<Unmeasured> take_largest(UnmeasuredByOp& by_op, int threads);
  bool may_measure(double seconds) const { return !options_.may_measure || options_.may_measure(seconds); }
  Answer& find(const Graph& graph, const Node& node, int threads);
  Answer ask(const Graph& graph, const Node& node, int threads, bool measure);
  double corrected(std::string_view op, int threads, double estimate_us);

  CatalogCostOptions options_;
  std::optional<size_t> constant_bytes_;  // of the graph that was asked about first: the whole
  double seconds_measured_ = 0;
  std::unordered_map<Hash128, Answer> known_;
  std::map<std::pair<std::string_view, int>, Correction> corrections_;  // by op and threads
};

}  // namespace autograph
