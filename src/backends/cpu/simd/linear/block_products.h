// Products with weights of 4 or 8 bits in blocks of k, which stay packed: see block_matmul.
//
// A panel holds block_panel_width() columns of w^T, block after block: scales, offsets where there are zero points
// (zero point times scale, counted from the middle), then numbers, those of one column in words of 32 bits.
#pragma once

#include <cstdint>

namespace autograph::simd {

/// What w looks like.
struct BlockFormat {
  int64_t n, blocks, block;  ///< block: a multiple of the numbers in a word.
  int64_t bits;
  bool has_zeros;  ///< Else there are no offsets.

  int64_t per_word() const { return 32 / bits; }
  int64_t middle() const { return int64_t{1} << (bits - 1); }
  int64_t depth() const { return blocks * block; }
};

int64_t block_panel_width();
int64_t block_panel_bytes(const BlockFormat& format);
/// Packs columns [first, first + width) of which there are format.n. `zero` may be null.
void pack_block_panel(const BlockFormat& format, const uint8_t* q, const float* scale, const float* zero, int64_t first,
                      uint8_t* panel);

/// Columns of c [rows, format.n]: those of panels [begin, end).
struct BlockProduct {
  const BlockFormat& format;
  int64_t rows;
  const uint8_t* panels;  ///< All of them.
  int64_t begin, end;
  float* c;
};

/// Up to so many rows numbers are unpacked in registers; for more they are unpacked to memory first.
inline constexpr int64_t kFewBlockRows = 4;
/// Bytes of memory that either of the following needs, whose `working` is aligned for vectors.
int64_t block_working_bytes(const BlockFormat& format, int64_t rows);

/// x as it is.
struct FloatRows {
  const float* numbers;  ///< [rows, format.depth()].
  int64_t stride;
  const float* sums;  ///< [rows, format.blocks] of numbers; read where there are zero points and few rows.

  /// The rows from `first` on.
  FloatRows from(const BlockFormat& format, int64_t first) const {
    return {numbers + first * stride, stride, sums ? sums + first * format.blocks : nullptr};
  }
};
void multiply_block_panels(const BlockProduct& product, const FloatRows& rows, uint8_t* working);

/// x rounded to multiples of 1/32767 of the largest number in its block.
struct RoundedRows {
  int16_t* numbers;  ///< In the order in which words are unpacked; [rows, format.depth()].
  int64_t stride;
  float* scales;   ///< [rows, format.blocks].
  float* middles;  ///< The same: the sum of what the numbers stand for, times format.middle().

  /// The rows from `first` on.
  RoundedRows from(const BlockFormat& format, int64_t first) const {
    return {numbers + first * stride, stride, scales + first * format.blocks, middles + first * format.blocks};
  }
};
/// Has this CPU instructions for rounded rows, and do the sums of a block fit 32 bits?
bool can_multiply_rounded(const BlockFormat& format);
/// One row; false where a block holds numbers that are not finite, or too small or large to be rounded.
bool round_block_row(const BlockFormat& format, const float* x, const RoundedRows& to);
void multiply_block_panels(const BlockProduct& product, const RoundedRows& rows, uint8_t* working);

}  // namespace autograph::simd
