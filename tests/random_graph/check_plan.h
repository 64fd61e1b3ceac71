// Runs a random graph by one kind of plan and compares with the reference.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/graphs/sample_graph.h"

namespace autograph {

/// The kinds: "plain" (all passes, kernels by estimate), "tuned", "exact", "unoptimised", "attested", "tuned in
/// network", and for each strategy "search:NAME", whose graph and schedule are taken whether they are faster or not;
/// these run where all shapes are static alone.
std::vector<std::string> plan_kinds();

/// A kind for a graph besides "plain", in turns.
std::string drawn_plan_kind(uint64_t seed, const TestGraph& test);

/// How a comparison ended.
struct PlanCheck {
  bool is_refused = false;  ///< The reference refuses the graph, and so does the plan.
  std::string difference;   ///< "" when all is well.
};

/// Of a graph and the results of the reference. `threads`: of a run; `device`: that the plans are for.
class PlanChecker {
 public:
  explicit PlanChecker(const TestGraph& test, std::string device = "cpu");
  PlanCheck check(const std::string& kind, int threads) const;

 private:
  const TestGraph& test_;
  std::string device_;
  bool is_refused_ = false;
  std::string refusal_;
  std::vector<Datum> expected_;
};

/// What `bisect` says about a difference: pass, rule, kernel or schedule, and the smallest part that shows it.
std::string explain_difference(const TestGraph& test, const std::string& kind, int threads,
                               const std::string& device = "cpu");

}  // namespace autograph
