// Dynamic programming over parts (AutoGraph, AAAI 2023): the best ways to put a whole graph together from the ways that
// were found for its parts and for merges of neighbouring parts.
//
//   F[0] = {nothing};  F[j] = the K cheapest of f + o  for i < j, f in F[i], o among the options of parts i+1 ... j
//
// The sum of costs adds up over parts. The critical path does not where several tensors cross a cut: every prefix
// carries the times at which these are there, and every option the longest paths from its inputs to its outputs. A
// prefix knows nothing of what lies behind it but these times, so that a graph of any size is walked through once.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "optimize/search/backtracking.h"
#include "optimize/search/part_graph.h"
#include "optimize/search/partition.h"

namespace autograph {

/// What searching a part found: for itself, and for all parts that are equal to it but for weights and names.
struct PartOptions {
  std::shared_ptr<const PartGraph> part;  ///< The one that was searched.
  std::vector<Rewritten> options;         ///< Best first; the part as it is among them.
};

/// One interval of parts with the ways that were found for it.
struct IntervalOptions {
  uint32_t first = 0;  ///< First part.
  uint32_t last = 0;   ///< Last part.
  std::shared_ptr<const PartGraph> part;
  std::shared_ptr<const PartOptions> found;  ///< Of this part or of an equal one.

  const std::vector<Rewritten>& options() const { return found->options; }
};

/// One way to put the whole graph together.
struct Stitched {
  struct Piece {
    size_t interval = 0;  ///< In the list of intervals.
    size_t option = 0;
  };
  std::vector<Piece> pieces;  ///< In the order of the parts.
  double us = 0;              ///< Mixed cost.
};

/// How to stitch.
struct StitchOptions {
  double alpha = 1;  ///< Weight of the critical path.
  size_t keep = 6;   ///< Ways kept of each prefix, and of the whole.
  /// Asked for every interval; once it says so, the best prefix alone goes on. Null: never.
  std::function<bool()> should_stop = nullptr;
};

/// The best ways, cheapest first. `whole` is the graph that was partitioned.
std::vector<Stitched> stitch(const Graph& whole, const std::vector<IntervalOptions>& intervals, size_t num_parts,
                             const StitchOptions& options);

/// Puts whole graphs together. What was found for an equal part is applied to the part at hand, step by step, so that
/// its own weights decide; where a step does not apply to them the part stays as it is.
class Assembler {
 public:
  /// A whole graph and all rewrites that made it, in order.
  struct Whole {
    Graph graph;
    std::vector<RewriteStep> steps;
  };

  /// All must outlive this.
  Assembler(const Graph& whole, const std::vector<IntervalOptions>& intervals, const RuleMatcher& matcher)
      : whole_(whole), intervals_(intervals), matcher_(matcher) {}
  /// The whole graph with the pieces in place, dead nodes erased.
  Whole assemble(const std::vector<Stitched::Piece>& pieces);

 private:
  const Replayed& replayed(const Stitched::Piece& piece);

  const Graph& whole_;
  const std::vector<IntervalOptions>& intervals_;
  const RuleMatcher& matcher_;
  std::map<std::pair<size_t, size_t>, Replayed> known_;  // by interval and option
};

}  // namespace autograph
