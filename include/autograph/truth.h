// What a graph really gives: its numbers by the reference, and how far those of a right way may be from them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autograph/compare_values.h"
#include "autograph/compile.h"
#include "autograph/graph.h"

namespace autograph {

/// How much may be spent on the truth.
struct TruthLimits {
  double seconds = 0;  ///< Where the reference would take longer, parts of the graph are compared; 0: no limit.
  size_t bytes = 0;    ///< The same for memory; 0: what the machine has.
  /// When a reference that turns out to be slower than was expected is given up, and parts are compared; 0: never.
  double overdue_seconds = 0;
  /// Asked before each node; true: parts of the graph will do, and few of them. Null: never.
  std::function<bool()> is_cancelled = nullptr;
};

/// Outputs by the reference, or where that is too much by kernels that are compared with it node by node. Each element
/// has a tolerance of its own: by the size of the terms that it was made of, followed from the inputs on
/// (docs/design/0004). Copies share what is known.
class Truth {
 public:
  /// Runs `graph` on `inputs`. `options` say what compared results are computed with: their precision, and whether they
  /// are exact. States are as they are before the first run. Throws what compile() and run() throw.
  static Truth of(const Graph& graph, const std::vector<Datum>& inputs, const CompileOptions& options,
                  const TruthLimits& limits = {});

  /// Compares each output. `tolerance`: what is not given follows from the options.
  std::vector<Difference> compare(const std::vector<Datum>& outputs, Tolerance tolerance = {.share = -1}) const;
  /// The worst of compare(), and fault().
  Difference compare_all(const std::vector<Datum>& outputs) const;

  /// "all outputs by the reference", or what was compared instead.
  const std::string& how() const;
  /// Were all outputs computed by the reference?
  bool is_whole() const;
  /// Where the yardstick itself was wrong: a node and its values; "" otherwise. Only where is_whole() is false.
  const std::string& fault() const;

 private:
  struct Known;
  explicit Truth(std::shared_ptr<const Known> known);
  std::shared_ptr<const Known> known_;
};

}  // namespace autograph
