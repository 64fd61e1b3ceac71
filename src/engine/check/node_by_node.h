// What NanCheck::steps falls back on: the nodes of a graph as it was given, one by one.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "engine/executable.h"

namespace autograph {

/// Compiled only when it is asked for. Any number of threads may use it at once.
class NodeByNode {
 public:
  /// `states` are those of the runs that it stands in for.
  NodeByNode(Graph graph, const CompileOptions& options, const StateStore& states);
  /// Does a NaN come in from outside, which a joined step might turn into a number unseen? Inputs are looked at in
  /// every run, weights and states before the first.
  bool has_nan(const RunInputs& inputs);
  const Executable::Impl& executable();
  /// In a catch block of NonfiniteError, thrown by a step of joined nodes: throws what names the node, or the same
  /// error where nodes one by one make no NaN.
  [[noreturn]] void name_node(const RunInputs& inputs);

 private:
  const Graph graph_;
  CompileOptions options_;
  std::mutex mutex_;  // guards what follows
  std::optional<bool> has_nan_inside_;
  std::unique_ptr<Executable::Impl> executable_;
};

}  // namespace autograph
