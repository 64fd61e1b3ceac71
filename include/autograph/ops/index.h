// Typed builders of the ops that pick and write elements by index.
#pragma once

#include <string>

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

}  // namespace autograph
