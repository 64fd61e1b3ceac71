// Weights of 4 or 8 bits in blocks as kernels take them of a call: one matrix, or several one behind the other, packed
// panel by panel (block_products.h).
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "backends/cpu/known_inputs.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/linear/block_rows.h"
#include "runtime/memory/packed_constants.h"

namespace autograph::simd {

/// Of the input `slot`: [..., n, blocks, block * bits / 8], with scales in the next one and zero points, if any, in
/// that behind it.
inline BlockFormat block_format_of(const KernelCall& call, size_t slot) {
  const Dims q = call.input_dims(slot);
  const size_t rank = q.size();
  const int64_t bits = call.attributes.integer("bits");
  return {q[rank - 3], q[rank - 2], q[rank - 1] * 8 / bits, bits, call.has_input(slot + 2)};
}

/// "" when the weights of such a call can be packed, else the reason why not.
inline std::string why_not_packed_blocks(const KernelCall& call, size_t slot) {
  if (std::string reason = why_not_empty(call); !reason.empty()) return reason;
  const BlockFormat format = block_format_of(call, slot);
  if (format.block % format.per_word() != 0) return "blocks that do not fill words";
  return why_not_known(call, {slot, slot + 1, slot + 2}, "weights");
}

class PackedBlocks {
 public:
  PackedBlocks(const KernelCall& call, size_t slot)
      : format_(block_format_of(call, slot)),
        k_(call.attributes.integer("k")),
        panels_((format_.n + block_panel_width() - 1) / block_panel_width()),
        rounds_(!call.exact && call.attributes.integer("x_bits") == 16 && can_multiply_rounded(format_)) {
    const Tensor q = *call.constant(slot), scales = *call.constant(slot + 1);
    const Tensor zeros = format_.has_zeros ? *call.constant(slot + 2) : Tensor();
    packed_ =
        PackedConstants::share(call.packed, {q, scales, zeros}, fmt::format("packed_blocks {} {}", format_.bits, k_),
                               [&] { return packed(q, scales, zeros); });
  }

  const BlockFormat& format() const { return format_; }
  int64_t k() const { return k_; }
  int64_t num_panels() const { return panels_; }
  const uint8_t* matrix(int64_t which) const { return packed_->data<uint8_t>() + which * matrix_bytes(); }
  size_t size_bytes() const { return packed_->size_bytes(); }

  /// How many of `threads` are worth using for so many rows.
  int useful_threads_for(int threads, int64_t rows) const {
    const auto work = static_cast<double>(rows + 8) * static_cast<double>(format_.n) * static_cast<double>(k_) / 32;
    return useful_threads(threads, static_cast<int64_t>(std::min(work, 1e15)));
  }
  /// Rows of x; see BlockRowsOptions.
  BlockRows rows(int64_t count, bool in_groups, int threads) const {
    return {format_, k_, count, {.rounds = rounds_, .in_groups = in_groups, .threads = threads}};
  }
  /// Bytes of memory that a thread needs for so many rows.
  int64_t working_bytes(int64_t rows) const { return (block_working_bytes(format_, rows) + 63) / 64 * 64; }

 private:
  int64_t matrix_bytes() const { return panels_ * block_panel_bytes(format_); }

  Tensor packed(const Tensor& q, const Tensor& scales, const Tensor& zeros) const {
    const int64_t numbers = format_.n * format_.blocks, bytes = numbers * format_.block * format_.bits / 8;
    const int64_t matrices = scales.num_elements() / numbers;
    Tensor result = Tensor::empty(DType::u8, {matrices * matrix_bytes()});
    auto* to = result.mutable_data<uint8_t>();
    for (int64_t m = 0; m < matrices; ++m) {
      const float* const zero = zeros.is_present() ? zeros.data<float>() + m * numbers : nullptr;
      for (int64_t p = 0; p < panels_; ++p, to += block_panel_bytes(format_)) {
        pack_block_panel(format_, q.data<uint8_t>() + m * bytes, scales.data<float>() + m * numbers, zero,
                         p * block_panel_width(), to);
      }
    }
    return result;
  }

  const BlockFormat format_;
  const int64_t k_, panels_;
  const bool rounds_;
  std::shared_ptr<const Tensor> packed_;
};

}  // namespace autograph::simd
