// Which step makes the numbers wrong: the first pass, rule, schedule or kernel behind which they differ, and the
// smallest part of the model that shows it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/compare_values.h"
#include "autograph/compile.h"
#include "autograph/search.h"

namespace autograph {

/// How to look.
struct BisectOptions {
  Tolerance tolerance = {};
  SearchOptions search = {.strategy = Strategy::sequential};  ///< `sequential`: passes alone.
  bool shrink = true;                                         ///< Also find the smallest part that fails.
  size_t max_trials = 500;                                    ///< Parts tried while shrinking.
  /// Called before every trial: what is tried, how many trials there were.
  std::function<void(std::string_view what, size_t trials)> on_progress = nullptr;
  std::function<bool()> is_cancelled = nullptr;  ///< True ends the shrinking with the smallest so far.
};

/// What kind of step is to blame.
enum class Culprit : uint8_t {
  none,      ///< The numbers agree.
  pass,      ///< A pass made a graph that computes something else.
  rule,      ///< A rule of the search did.
  kernel,    ///< The graph is right, a kernel of the device is not (or is less precise than the tolerance).
  schedule,  ///< Right on one stream, wrong on several.
};

/// "none", "pass", "rule", "kernel", "schedule".
std::string_view to_string(Culprit culprit);

/// What was found.
struct BisectReport {
  Culprit culprit = Culprit::none;
  std::string name;     ///< Of the pass or the rule; of the kernel for Culprit::kernel.
  size_t position = 0;  ///< Of the pass in the pipeline, or of the rewrite in the search, from 1; 0: unknown.
  std::string where;    ///< Of a rewrite: the nodes it replaced, in the words of the user.
  std::vector<std::string> nodes;  ///< Nodes of the smallest part, in the words of the user.
  Difference difference;           ///< Of all the model.
  Graph smallest;                  ///< The smallest part that still fails; empty when the numbers agree.
  std::vector<Datum> inputs;       ///< On which it fails.
  size_t trials = 0;               ///< Compiled and run.
  bool is_complete = true;         ///< False: shrinking was stopped before its end.
};

/// Compares `graph`, compiled with `options`, with the reference backend on `inputs`; where they differ, looks for the
/// step. Throws what compile() throws.
BisectReport bisect(const Graph& graph, const CompileOptions& options, const std::vector<Datum>& inputs,
                    const BisectOptions& how = {});

}  // namespace autograph
