// Do two runs of a graph agree, when one of them rounds differently?
//
// Ops such as floor or arg_max turn a rounding difference into a jump, and sums lose digits in proportion to what they
// add up, not to what is left. So the reference also runs on inputs and weights moved by a few parts in a million, with
// each element of what nodes make moved by about a rounding (moved_runs.h): where that moves an output element, the
// element may differ by a multiple of the movement; all others must agree tightly. In half precision an element may
// also lie between what the reference gives and what it gives in f32. An element is infinite or NaN only where one of
// these runs says so, and finite where one of them does. NaN may vanish in relu, clip and hard_sigmoid and
// where a mask of attention hides it, and come of padding that meets what is not finite.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "support/moved_runs.h"

namespace autograph {

/// The evidence of a round: run_moved() of a graph.
using MoveRuns = std::function<MovedRuns(int round)>;

/// "" when they agree, else the first difference in words. `move` is asked only when there is a difference at all, and
/// for a further round only when those before do not explain it.
std::string disagreement(const std::vector<Datum>& actual, const std::vector<Datum>& expected, const MoveRuns& move);

/// The same for results of `test`.
std::string disagreement(const std::vector<Datum>& actual, const std::vector<Datum>& expected, const TestGraph& test);

}  // namespace autograph
