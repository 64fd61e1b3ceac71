// Products with weights of 4 or 8 bits in blocks of k, which stay packed: see block_matmul.
//
// A panel holds block_panel_width() columns of w^T, block after block: scales, offsets (zero point times scale, counted
// from the middle), then numbers, those of one column in words of 32 bits.
#pragma once

#include <cstdint>

namespace autograph::simd {

/// What w looks like.
struct BlockFormat {
  int64_t n, blocks, block;  ///< block: a multiple of the numbers in a word.
  int64_t bits;
  bool has_zeros;  ///< Else all offsets are 0.

  int64_t per_word() const { return 32 / bits; }
  int64_t middle() const { return int64_t{1} << (bits - 1); }
  int64_t depth() const { return blocks * block; }
};

int64_t block_panel_width();
int64_t block_panel_bytes(const BlockFormat& format);
/// Packs columns [first, first + width) of which there are format.n. `zero` may be null.
void pack_block_panel(const BlockFormat& format, const uint8_t* q, const float* scale, const float* zero, int64_t first,
                      uint8_t* panel);

/// c [rows, width] = a [rows, depth] times a panel.
struct BlockProduct {
  const BlockFormat& format;
  const float* a;
  int64_t a_stride;
  const float* sums;  ///< [rows, blocks] of a; read where there are zero points and few rows.
  int64_t rows;
  const uint8_t* panel;
  float* c;
  int64_t c_stride;
};

/// Up to so many rows numbers are unpacked in registers; for more they are unpacked to memory first.
inline constexpr int64_t kFewBlockRows = 4;
/// Floats of memory that multiply_block_panel() needs for many rows.
int64_t block_unpacked_size(const BlockFormat& format);
void multiply_block_panel(const BlockProduct& product, float* unpacked);

}  // namespace autograph::simd
