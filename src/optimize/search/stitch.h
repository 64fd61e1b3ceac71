// Dynamic programming over parts (AutoGraph, AAAI 2023): the best ways to put a whole graph together from the ways that
// were found for its parts and for merges of neighbouring parts.
//
//   F[0] = {nothing};  F[j] = the K cheapest of f + o  for i < j, f in F[i], o among the options of parts i+1 ... j
//
// The sum of costs adds up over parts. The critical path does not where several tensors cross a cut: every prefix
// carries the times at which these are there, from which each option's longest paths go on.
#pragma once

#include <memory>
#include <vector>

#include "optimize/search/backtracking.h"
#include "optimize/search/part_graph.h"
#include "optimize/search/partition.h"

namespace autograph {

/// The ways found for one interval of parts, best first.
struct IntervalOptions {
  uint32_t first = 0;  ///< First part.
  uint32_t last = 0;   ///< Last part.
  std::shared_ptr<const PartGraph> part;
  std::vector<Rewritten> options;  ///< The part as it is among them.
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

/// The `keep` best, cheapest first. `whole` is the graph that was partitioned.
std::vector<Stitched> stitch(const Graph& whole, const std::vector<IntervalOptions>& intervals, size_t num_parts,
                             double alpha, size_t keep);

/// The whole graph with the pieces in place, dead nodes erased.
Graph assemble(const Graph& whole, const std::vector<IntervalOptions>& intervals, const Stitched& stitched);

/// All rewrites of the pieces, in order.
std::vector<RewriteStep> steps_of(const std::vector<IntervalOptions>& intervals, const Stitched& stitched);

}  // namespace autograph
