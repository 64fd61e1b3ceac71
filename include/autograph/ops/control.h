// Typed builders of control flow. Bodies are graphs of their own; what they take from outside is handed to them as
// their last inputs.
#pragma once

#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// The outputs of one of two graphs: `then_branch` where `condition` (one bool) holds, else `otherwise`. Both take
/// `captured` as their inputs and have equally many outputs.
std::vector<Var> if_else(Var condition, const Graph& then_branch, const Graph& otherwise,
                         const std::vector<Var>& captured = {});
/// Runs `body` at most `max_turns` times (one i64; not given: no limit) while its condition holds (`condition`, one
/// bool, before the first turn; not given: true). `body` takes (turn i64[], condition bool[], states..., captured...)
/// and gives (condition, states..., scan outputs...). Gives the last states, then the scan outputs, stacked along a new
/// first axis.
std::vector<Var> loop(Var max_turns, Var condition, const std::vector<Var>& states, const Graph& body,
                      const std::vector<Var>& captured = {});
/// Runs `body` once for each slice of `scanned` along their first axes. `body` takes (states..., a slice of each...,
/// captured...) and gives (states..., a slice of each scan output...). Gives the last states, then the stacked scan
/// outputs. `attributes`: axes and directions, see `autograph ops scan`.
std::vector<Var> scan(const std::vector<Var>& states, const std::vector<Var>& scanned, const Graph& body,
                      const std::vector<Var>& captured = {}, Attributes attributes = {});
/// The same tensors, behind a barrier: what makes any of `xs` comes before what reads any of the results, and no pass
/// merges the two sides. At least one tensor.
std::vector<Var> barrier(const std::vector<Var>& xs);
/// `results`, with a gradient of their own instead of that of the ops they were computed with: `gradient` takes
/// (gradients of the results..., captured...) and gives a gradient for each of `inputs`, in its type.
std::vector<Var> with_gradient(const std::vector<Var>& results, const std::vector<Var>& inputs, const Graph& gradient,
                               const std::vector<Var>& captured = {});
/// Whoever forms the gradient of `x`, floats of a graph, takes what `gradient` makes of (the whole gradient of x,
/// captured...) for it.
void gradient_hook(const Var& x, const Graph& gradient, const std::vector<Var>& captured = {});

}  // namespace autograph
