// Products of bytes, summed in 32 bits that wrap around: what products and convolutions of integers have in common.
//
// Where a CPU adds four products of bytes in one instruction (AVX-512 VNNI), rows are bytes without a sign. Elsewhere
// they are widened to 16 bits and freed of their zero point, which makes no sum overflow on the way. The columns are
// bytes with a sign in both. Zero points times sums of the other side are taken off at the end.
#pragma once

#include <cstdint>
#include <vector>

#include "autograph/kernel.h"

namespace autograph::simd {

/// Bytes of a prepared row.
int64_t integer_row_bytes(int64_t depth);
/// What is taken off its products.
struct IntegerRow {
  int32_t sum;   ///< Of the row without its zero point.
  int32_t zero;  ///< Zero point of the prepared row.
};
IntegerRow prepare_integer_row(const uint8_t* bytes, bool is_signed, int32_t zero, int64_t depth, void* row);

/// Columns of a panel, rows that are worth taking together, and rows of the depth that are packed together.
int64_t integer_panel_width();
int64_t integer_tile_rows();
int64_t integer_group();
int64_t integer_panel_bytes(int64_t depth);

/// A matrix of bytes [depth, columns]. Bytes without a sign are packed 128 lower: so are their zero points.
struct ByteMatrix {
  const uint8_t* bytes;
  int64_t row_stride;
  bool is_signed;
};
constexpr int32_t kUnsignedShift = 128;
/// Packs rows [k, k + integer_group()) of `count` columns, of which some may be behind the depth: `panels` has panels
/// of the whole depth.
void pack_integer_rows(const ByteMatrix& rows, int64_t count, int64_t k, int64_t depth, int8_t* panels);
/// Once all rows are packed: finishes the panels of `count` columns.
void finish_integer_panels(int64_t count, int64_t depth, int8_t* panels);

/// y [count, columns] = rows times columns, both without their zero points.
struct IntegerProductTask {
  const void* rows;  ///< Prepared, one after the other.
  const IntegerRow* terms;
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
