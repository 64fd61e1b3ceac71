// Gradients of tables that are read row by row: zeros but for the rows that were read.
#pragma once

#include <cstdint>
#include <optional>

#include "autograph/builder.h"

namespace autograph {

/// What a gradient has beside zeros. An index may stand there several times; its rows are then equal.
struct RowGradient {
  Var indices;  ///< i64 [n], not negative.
  Var rows;     ///< [n, ...]: of each index its whole row of the gradient, with the same bits.

  /// The rows of a table, of the shape of the gradient, that the gradient is about.
  Var read(const Var& table) const;
  /// The table with other rows in their places.
  Var write(const Var& table, const Var& values) const;
};

/// How many rows of `gradient` were added to zeros, those of one place counted each; none where it is not made so: by
/// scatter_nd along the first axis as rules of gather do, sums of such, and products of them and single numbers.
std::optional<int64_t> num_scattered_rows(const Var& gradient);

/// Its rows, as further nodes; none where num_scattered_rows() has none.
std::optional<RowGradient> row_gradient(const Var& gradient);

}  // namespace autograph
