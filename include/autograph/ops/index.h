// Typed builders of the ops that pick and write elements by index.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// Slices of `x` along `axis`; the dims of `indices` (i32 or i64) take the place of the axis.
Var gather(Var x, Var indices, int64_t axis = 0);
/// Single elements of `x` along `axis`; shape of `indices`.
Var gather_elements(Var x, Var indices, int64_t axis = 0);
/// indices.shape[:-1] + x.shape[batch_dims + indices.shape[-1]:].
Var gather_nd(Var x, Var indices, int64_t batch_dims = 0);
/// A copy of `x` with `updates` (shape of `indices`) written along `axis`. reduction: none, add, mul, max, min.
Var scatter_elements(Var x, Var indices, Var updates, int64_t axis = 0, const std::string& reduction = "none");
/// A copy of `x` with slices written where the tuples in the last dim of `indices` point.
Var scatter_nd(Var x, Var indices, Var updates, const std::string& reduction = "none");
/// A new axis of extent `depth` (one element): values[1] at the index, values[0] elsewhere.
Var one_hot(Var indices, Var depth, Var values, int64_t axis = -1);
/// Positions of the elements that are not zero: i64 [rank, n].
Var non_zero(Var x);
/// The slices along `axis` for which `condition` (bool [n]) holds.
Var compress(Var x, Var condition, int64_t axis);
/// `cache` with `update` written along `axis` from position write_indices[b] (i64 [batch]; 0 when not given) of each
/// batch entry on; mode circular: positions wrap around.
Var tensor_scatter(Var cache, Var update, Var write_indices = {}, int64_t axis = -2,
                   const std::string& mode = "linear");
/// The different elements of x, or slices along `axis`: {they, first position of each, which one each is, how many of
/// each}, ascending or, not `sorted`, as they come.
std::vector<Var> unique(Var x, std::optional<int64_t> axis = {}, bool sorted = true);

}  // namespace autograph
