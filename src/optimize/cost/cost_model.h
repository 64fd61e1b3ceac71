// What nodes take: the question that the search and the schedulers ask, and never a device.
#pragma once

#include <optional>

#include "autograph/graph.h"
#include "optimize/cost/kernel_load.h"

namespace autograph {

/// For one thread at a time.
class CostModel {
 public:
  virtual ~CostModel() = default;
  /// Microseconds of one run of the node by itself on `threads` threads: the launch included, 0 only for true views
  /// and for nodes that depend on constants alone. Moving data is work. Types must be static; other nodes cost a
  /// launch.
  virtual double node_us(const Graph& graph, NodeId node, int threads) = 0;
  /// What the node takes of a device that streams share; nothing where they have processors of their own.
  virtual std::optional<KernelLoad> node_load(const Graph&, NodeId) { return std::nullopt; }
  /// Are parts written where they will be joined, and pieces read where they lie, wherever memory allows it? Then
  /// node_us() of a concat or split is that of the ones that are copied.
  virtual bool places_parts() const { return true; }
  /// Threads that a run has.
  virtual int threads() const = 0;
};

/// Does the node only give its input another shape, so that it takes neither time nor memory?
bool is_true_view(const Graph& graph, NodeId node);

}  // namespace autograph
