// Do two runs of a graph agree, when one of them rounds differently?
//
// Ops such as floor or arg_max turn a rounding difference into a jump, and sums lose digits in proportion to what they
// add up, not to what is left. So the reference also runs on inputs and weights moved by a few parts in a million, with
// each element of what nodes make moved by about a rounding: where that moves an output element, the element may differ
// by a multiple of the movement; all others must agree tightly.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "support/sample_graph.h"

namespace autograph {

/// Runs on the reference device, without passes.
std::vector<Datum> run_reference(const Graph& graph, const std::vector<Datum>& inputs);

/// The results with everything moved, once for each movement; illegal ones (a weight that is a parameter) are
/// left out.
std::vector<std::vector<Datum>> run_moved(const TestGraph& test);

/// "" when they agree, else the first difference in words. `moved` is asked for at most once, and only when there is a
/// difference at all.
std::string disagreement(const std::vector<Datum>& actual, const std::vector<Datum>& expected,
                         const std::function<std::vector<std::vector<Datum>>()>& moved);

}  // namespace autograph
