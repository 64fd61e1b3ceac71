// A pass that applies rules wherever they match: what a formula is and what becomes of it stands in the rules.
#pragma once

#include <span>

#include "optimize/pass.h"
#include "optimize/rules/rule.h"

namespace autograph {

/// How a pass walks the graph.
struct RulePassOptions {
  bool readers_first = false;  ///< So that the largest formula wins; else what it reads comes first.
  bool needs_kernel = false;   ///< Leaves a formula as it is where the device expects no kernel for what it becomes.
};

/// At each node in order, applies the first of `rules` that ends there.
class RulePass {
 public:
  RulePass(std::span<const Rule> rules, const RulePassOptions& options);
  /// True when the graph has changed.
  bool run(Graph& graph, const PassContext& context) const;

 private:
  bool apply_at(Graph& graph, const PassContext& context, NodeId node, std::span<const uint8_t> candidates) const;

  RuleMatcher matcher_;
  RulePassOptions options_;
};

}  // namespace autograph
