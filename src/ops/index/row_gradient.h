// Gradients of tables that are read row by row: zeros but for the rows that were read.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "autograph/builder.h"

namespace autograph {

/// What a gradient has beside zeros. An index may stand there several times; its rows are then equal.
struct RowGradient {
  Var indices;  ///< i64 [n], not negative.
  Var rows;     ///< [n, ...]: of each index its whole row of the gradient, with the same bits.
  Var once;     ///< [n, ...]: these rows in another order, those of one index once, and zeros: what sums are taken of.

  /// The rows of a table, of the shape of the gradient, that the gradient is about.
  Var read(const Var& table) const;
  /// The table with other rows in their places.
  Var write(const Var& table, const Var& values) const;
};

/// The rows of `gradient` that were added to zeros, as further nodes; none (and no node) where it is not made so: by
/// scatter_nd along the first axis as rules of gather do, and elementwise ops of such and single numbers that keep
/// zeros (sums, factors, clipping, is_nan); nor where there are more than `max_rows`, those of one place counted each.
std::optional<RowGradient> row_gradient(const Var& gradient, int64_t max_rows = std::numeric_limits<int64_t>::max());

}  // namespace autograph
