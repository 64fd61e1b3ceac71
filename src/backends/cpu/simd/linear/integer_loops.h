// Products of bytes, summed in 32 bits that wrap around: what products and convolutions of integers have in common.
//
// The rows are widened to 16 bits and freed of their zero point, which makes no sum overflow on the way; the columns
// stay bytes, and their zero point times the sum of the row is taken off at the end.
#pragma once

#include <cstdint>
#include <vector>

#include "autograph/kernel.h"

namespace autograph::simd {

/// Numbers of a row: its depth, rounded up to whole pairs.
constexpr int64_t integer_row_size(int64_t depth) { return (depth + 1) / 2 * 2; }
/// row = bytes - zero, with zeros up to integer_row_size(); returns the sum.
int32_t widen_row(const uint8_t* bytes, bool is_signed, int32_t zero, int64_t depth, int16_t* row);

/// Columns of a panel, and rows that are worth taking together.
int64_t integer_panel_width();
int64_t integer_tile_rows();
inline int64_t integer_panel_bytes(int64_t depth) { return integer_panel_width() * integer_row_size(depth); }

/// A matrix of bytes [depth, columns]. Bytes without a sign are packed 128 lower: so are their zero points.
struct ByteMatrix {
  const uint8_t* bytes;
  int64_t row_stride;
  bool is_signed;
};
constexpr int32_t kUnsignedShift = 128;
/// Packs rows [k, k + 2) of `count` columns, of which the second one may be behind the depth: `panels` has panels of
/// the whole depth.
void pack_integer_rows(const ByteMatrix& two_rows, int64_t count, int64_t k, int64_t depth, int8_t* panels);

/// y [count, columns] = rows times columns - zeros times sums of rows.
struct IntegerProductTask {
  const int16_t* rows;
  const int32_t* row_sums;
  int64_t count;
  int64_t depth;
  const int8_t* panels;  ///< Of all columns, one after the other.
  int64_t columns;
  const int32_t* zeros;  ///< Of the columns as packed, up to whole panels.
  int32_t* y;
  int64_t y_stride;
};
void multiply_integers(const IntegerProductTask& task);

/// The one form of a kernel of these products, with an estimate of its time.
std::vector<KernelVariant> integer_variants(const KernelCall& call);

}  // namespace autograph::simd
