// The rows of x in products with packed weights of 4 or 8 bits (block_products.h): as they are, copied where that
// makes products faster, or rounded to 16 bits.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <optional>

#include "backends/cpu/simd/linear/block_products.h"
#include "backends/cpu/threads/parallel.h"

namespace autograph::simd {

struct BlockRowsOptions {
  bool rounds = false;     ///< May rows be rounded?
  bool in_groups = false;  ///< Are some of the rows multiplied at a time, those of one matrix? They lie anywhere.
  int threads = 1;
};

class BlockRows {
 public:
  /// `count` rows of `k` numbers, for weights of `format`.
  BlockRows(const BlockFormat& format, int64_t k, int64_t count, BlockRowsOptions options)
      : format_(format), k_(k), count_(count), options_(options) {}

  /// Of memory that with_rows() needs, whose start is aligned for vectors.
  int64_t bytes() const { return std::max(float_rows_bytes(), options_.rounds ? rounded_rows_bytes() : 0); }

  /// multiply(rows) with FloatRows or RoundedRows of all rows; row_of(i) points to k numbers.
  template <class RowOf, class Multiply>
  void with_rows(const RowOf& row_of, uint8_t* memory, const Multiply& multiply) const {
    if (options_.rounds) {
      if (const auto rounded = round_rows(row_of, memory)) return multiply(*rounded);
    }
    multiply(float_rows(row_of, reinterpret_cast<float*>(memory)));
  }

 private:
  bool is_padded() const { return k_ != format_.depth(); }
  bool are_few() const { return count_ <= kFewBlockRows; }
  static int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

  // Rows that are copied lie so far apart that the first cache holds a tile of them, whatever the depth is.
  int64_t spaced_stride() const { return format_.depth() + kSpace; }

  // ---- Rows as they are ------------------------------------------------------------------------------------------

  bool copies_rows() const { return is_padded() || !are_few() || options_.in_groups; }
  bool sums_rows() const { return format_.has_zeros && (are_few() || options_.in_groups); }
  int64_t copied_bytes() const { return copies_rows() ? round_up(count_ * spaced_stride() * kFloat) : 0; }
  int64_t float_rows_bytes() const { return copied_bytes() + (sums_rows() ? count_ * format_.blocks * kFloat : 0); }

  template <class RowOf>
  FloatRows float_rows(const RowOf& row_of, float* memory) const {
    FloatRows rows{row_of(0), k_, nullptr};
    if (copies_rows()) {
      rows = {memory, spaced_stride(), nullptr};
      for_shares(options_.threads, count_, [&](int64_t begin, int64_t end, int /*thread*/) {
        for (int64_t row = begin; row < end; ++row) pad(row_of(row), memory + row * spaced_stride());
      });
    }
    if (!sums_rows()) return rows;
    float* const sums = memory + copied_bytes() / kFloat;
    for (int64_t i = 0; i < count_ * format_.blocks; ++i) {
      const float* const block = rows.numbers + i / format_.blocks * rows.stride + i % format_.blocks * format_.block;
      sums[i] = std::accumulate(block, block + format_.block, 0.0F);
    }
    rows.sums = sums;
    return rows;
  }

  void pad(const float* row, float* to) const { std::fill(std::copy_n(row, k_, to), to + format_.depth(), 0.0F); }

  // ---- Rounded rows ----------------------------------------------------------------------------------------------

  int64_t numbers_bytes() const { return round_up(count_ * spaced_stride() * static_cast<int64_t>(sizeof(int16_t))); }
  int64_t scales_bytes() const { return round_up(count_ * format_.blocks * kFloat); }
  int64_t padded_bytes() const { return is_padded() ? round_up(format_.depth() * kFloat) : 0; }
  int64_t rounded_rows_bytes() const {
    return numbers_bytes() + 2 * scales_bytes() + options_.threads * padded_bytes();
  }

  // Nothing where there are numbers that cannot be rounded.
  template <class RowOf>
  std::optional<RoundedRows> round_rows(const RowOf& row_of, uint8_t* memory) const {
    const RoundedRows all{reinterpret_cast<int16_t*>(memory), spaced_stride(),
                          reinterpret_cast<float*>(memory + numbers_bytes()),
                          reinterpret_cast<float*>(memory + numbers_bytes() + scales_bytes())};
    uint8_t* const padded = memory + numbers_bytes() + 2 * scales_bytes();
    std::atomic<bool> is_rounded = true;
    for_shares(options_.threads, count_, [&](int64_t begin, int64_t end, int thread) {
      for (int64_t row = begin; row < end; ++row) {
        const float* from = row_of(row);
        if (is_padded()) {
          auto* const whole = reinterpret_cast<float*>(padded + thread * padded_bytes());
          pad(from, whole);
          from = whole;
        }
        if (!round_block_row(format_, from, all.from(format_, row))) is_rounded.store(false, std::memory_order_relaxed);
      }
    });
    return is_rounded ? std::optional(all) : std::nullopt;
  }

  static constexpr int64_t kSpace = 32;
  static constexpr int64_t kFloat = sizeof(float);

  BlockFormat format_;
  int64_t k_, count_;
  BlockRowsOptions options_;
};

}  // namespace autograph::simd
