// The products of recurrent_layer.h with weights of 8 bits, which stay so in memory. x and h are rounded to 16 bits of
// the largest magnitude of their row, but for single numbers far above the others, which count by themselves. Sums are
// exact: where a CPU sums four products of bytes in one instruction (AVX-512 VNNI), bytes are multiplied one after the
// other; other CPUs multiply pairs of 16-bit numbers (AVX2, AVX-512).
#pragma once

#include <cstdint>

#include "backends/cpu/simd/recurrent/recurrent_layer.h"

namespace autograph::simd {

/// Does this CPU have such instructions?
bool has_byte_products();

/// Depth up to which sums fit 32 bits.
inline constexpr int64_t kDeepestByteProduct = 65000;

/// Floats of a prepared row.
int64_t byte_row_size(int64_t depth);
/// Prepares `rows.count` rows; with `keeps_low` all of them with 24 bits, as floats have.
void prepare_byte_rows(const GateRows& rows, int64_t depth, bool keeps_low, float* prepared);
/// Had a row neither NaN nor infinity? Products of other rows are NaN: see multiply_row_by_panel().
bool is_finite_row(const float* prepared);

/// Columns of a matrix of bytes [depth, columns].
struct ByteColumns {
  const uint8_t* bytes;
  bool is_signed;
  int64_t row_stride;
  int64_t count;        ///< Up to gate_width().
  const float* scales;  ///< For each column, `scale_step` apart.
  int64_t scale_step;
  const uint8_t* zeros;  ///< Zero points, likewise, of the dtype of `bytes`.
};

/// Bytes of a panel, in which gate_width() columns are packed.
int64_t byte_panel_size(int64_t depth);
void pack_byte_panel(const ByteColumns& columns, int64_t depth, uint8_t* panel);

/// c [rows, panels * gate_width()] = prepared rows times panels that stand one after the other.
struct ByteProduct {
  const float* rows;
  int64_t count;
  int64_t depth;
  const uint8_t* panels;
  int64_t num_panels;
  float* c;
  int64_t c_stride;
};
void multiply_bytes(const ByteProduct& product);

/// The same for one panel and a row of any floats, by plain loops.
void multiply_row_by_panel(const float* row, int64_t depth, const uint8_t* panel, float* c);

}  // namespace autograph::simd
