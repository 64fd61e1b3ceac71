// Products of bytes, summed in 32 bits that wrap around: what products and convolutions of integers have in common.
//
// Where a CPU adds four products of bytes in one instruction (AVX-512 VNNI), rows are bytes without a sign. Elsewhere
// they are widened to 16 bits and freed of their zero point, which makes no sum overflow on the way; with AVX2, where
// known columns let sums of two products fit 16 bits, they are bytes as well. The columns are bytes with a sign in all.
// Zero points times sums of the other side are taken off at the end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autograph/kernel.h"

namespace autograph::simd {

/// When the columns that rows meet are packed: once, which may take long, or in each run.
enum class PackedWhen { once, each_run };

/// Bytes of a prepared row.
int64_t integer_row_bytes(int64_t depth, PackedWhen packed);
/// What is taken off its products.
struct IntegerRow {
  int32_t sum;   ///< Of the row without its zero point.
  int32_t zero;  ///< Zero point of the prepared row.
};
/// Rows of bytes, each in runs that lie apart in memory.
struct ByteRows {
  const uint8_t* const* starts;   ///< Of each row.
  std::span<const int64_t> runs;  ///< Where its runs begin, from there.
  int64_t run_bytes;
  const uint8_t* end;  ///< Of what may be read, and is not used, behind a run.
  bool is_signed;
  int32_t zero;
  PackedWhen packed;  ///< The columns.
};
/// Rows one behind the other. Without sums, which weights need that have a zero point, those of `terms` are 0.
void prepare_integer_rows(const ByteRows& rows, int64_t count, bool with_sums, void* to, IntegerRow* terms);
/// One row in one run, with its sum.
IntegerRow prepare_integer_row(const uint8_t* bytes, bool is_signed, int32_t zero, int64_t depth, PackedWhen packed,
                               void* row);

/// Columns of a panel, rows that are worth taking together, and rows of the depth that are packed together.
int64_t integer_panel_width();
int64_t integer_tile_rows();
int64_t integer_group(PackedWhen packed);
int64_t integer_panel_bytes(int64_t depth, PackedWhen packed);

/// A matrix of bytes [depth, columns]. Bytes without a sign are packed 128 lower: so are their zero points.
struct ByteMatrix {
  const uint8_t* bytes;
  int64_t row_stride;
  bool is_signed;
};
constexpr int32_t kUnsignedShift = 128;
/// Packs a group of rows from row k on of `count` columns, of which some may be behind the depth: `panels` has panels
/// of the whole depth.
void pack_integer_rows(const ByteMatrix& rows, int64_t count, int64_t k, int64_t depth, PackedWhen packed,
                       int8_t* panels);
/// Once all rows are packed: finishes the panels of `count` columns.
void finish_integer_panels(int64_t count, int64_t depth, PackedWhen packed, int8_t* panels);

/// Matrices of bytes [count, depth, columns].
struct ByteMatrices {
  const uint8_t* bytes;
  int64_t count, depth, columns;
  bool is_signed;
};
/// Packs and finishes the panels of all columns of each matrix, one after the other.
void pack_integer_matrices(const ByteMatrices& matrices, int threads, PackedWhen packed, int8_t* panels);

/// How many of `threads` are worth using for so many products of bytes.
int useful_integer_threads(int threads, double products);

/// y [count, columns] = rows times columns, both without their zero points.
struct IntegerProductTask {
  const void* rows;  ///< Prepared, one after the other.
  const IntegerRow* terms;
  int64_t count;
  int64_t depth;
  const int8_t* panels;  ///< Of all columns, one after the other.
  PackedWhen packed;     ///< These.
  int64_t columns;
  const int32_t* zeros;  ///< Of the columns as packed, up to whole panels; null: all are 0.
  int32_t* y;
  int64_t y_stride;
};
void multiply_integers(const IntegerProductTask& task);

/// The one form of a kernel of these products, with an estimate of its time.
std::vector<KernelVariant> integer_variants(const KernelCall& call);

}  // namespace autograph::simd
