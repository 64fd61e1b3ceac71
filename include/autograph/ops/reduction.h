// Typed builders of the reductions. An empty list of axes means all of them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "autograph/builder.h"

namespace autograph {

// Over `axes` (negative ones count from the end); with keepdims the reduced extents become 1, else they go.
Var reduce_sum(Var x, const std::vector<int64_t>& axes = {}, bool keepdims = true);
Var reduce_mean(Var x, const std::vector<int64_t>& axes = {}, bool keepdims = true);
Var reduce_prod(Var x, const std::vector<int64_t>& axes = {}, bool keepdims = true);
Var reduce_max(Var x, const std::vector<int64_t>& axes = {}, bool keepdims = true);
Var reduce_min(Var x, const std::vector<int64_t>& axes = {}, bool keepdims = true);
Var reduce_l1(Var x, const std::vector<int64_t>& axes = {}, bool keepdims = true);
Var reduce_l2(Var x, const std::vector<int64_t>& axes = {}, bool keepdims = true);
Var reduce_log_sum(Var x, const std::vector<int64_t>& axes = {}, bool keepdims = true);
Var reduce_log_sum_exp(Var x, const std::vector<int64_t>& axes = {}, bool keepdims = true);
Var reduce_sum_square(Var x, const std::vector<int64_t>& axes = {}, bool keepdims = true);

/// Index (i64) of the first largest element along `axis`.
Var arg_max(Var x, int64_t axis, bool keepdims = true);
/// Index (i64) of the first smallest element along `axis`.
Var arg_min(Var x, int64_t axis, bool keepdims = true);
/// Running sums along `axis`; the shape of x.
Var cum_sum(Var x, int64_t axis, bool exclusive = false, bool reverse = false);
/// Running products along `axis`; the shape of x.
Var cum_prod(Var x, int64_t axis, bool exclusive = false, bool reverse = false);
/// The k largest (or smallest) elements along `axis`, best first, and their indices (i64).
std::pair<Var, Var> top_k(Var x, int64_t k, int64_t axis = -1, bool largest = true);

}  // namespace autograph
