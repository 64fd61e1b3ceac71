// block_matmul: panels of packed weights, shared out among the threads (block_products.h), times rows as they are or,
// where the call lets kernels do so, rounded to 16 bits.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <optional>

#include "backends/cpu/known_inputs.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/linear/block_products.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "runtime/memory/packed_constants.h"

namespace autograph::simd {
namespace {

BlockFormat format_of(const KernelCall& call) {
  const Dims q = call.input_dims(1);
  const int64_t bits = call.attributes.integer("bits");
  return {q[0], q[1], q[2] * 8 / bits, bits, call.has_input(3)};
}

class BlockMatmulKernel : public Kernel {
 public:
  explicit BlockMatmulKernel(const KernelCall& call)
      : format_(format_of(call)),
        k_(call.attributes.integer("k")),
        rows_(call.inputs[0].shape().num_elements().value() / k_),
        width_(block_panel_width()),
        panels_((format_.n + width_ - 1) / width_),
        panel_bytes_(block_panel_bytes(format_)),
        rounds_(!call.exact && call.attributes.integer("x_bits") == 16 && can_multiply_rounded(format_)) {
    const auto work = static_cast<double>(rows_ + 8) * static_cast<double>(format_.n) * static_cast<double>(k_) / 32;
    threads_ = useful_threads(call.threads, static_cast<int64_t>(std::min(work, 1e15)));
    const Tensor zeros = call.has_input(3) ? *call.constant(3) : Tensor();
    packed_ = PackedConstants::share(call.packed, {*call.constant(1), *call.constant(2), zeros},
                                     fmt::format("block_matmul_simd {} {}", format_.bits, k_),
                                     [&] { return packed(*call.constant(1), *call.constant(2), zeros); });
  }

  size_t weight_bytes() const override { return packed_->size_bytes(); }
  bool reads_input(size_t slot) const override { return slot == 0; }
  size_t scratch_bytes() const override {
    const int64_t of_rows = std::max(float_rows_bytes(), rounds_ ? rounded_rows_bytes() : 0);
    return static_cast<size_t>(of_rows + threads_ * working_bytes());
  }

  void run(const KernelArgs& args) const override {
    const auto* const x = args.inputs[0].data<float>();
    auto* const c = args.outputs[0].mutable_data<float>();
    auto* const working = static_cast<uint8_t*>(args.scratch);
    uint8_t* const of_rows = working + threads_ * working_bytes();
    if (rounds_) {
      if (const auto rounded = round_rows(x, of_rows)) return multiply(*rounded, c, working);
    }
    multiply(float_rows(x, reinterpret_cast<float*>(of_rows)), c, working);
  }

 private:
  Tensor packed(const Tensor& weights, const Tensor& scales, const Tensor& zeros) const {
    Tensor result = Tensor::empty(DType::u8, {panels_ * panel_bytes_});
    const float* zero = zeros.is_present() ? zeros.data<float>() : nullptr;
    for (int64_t p = 0; p < panels_; ++p) {
      pack_block_panel(format_, weights.data<uint8_t>(), scales.data<float>(), zero, p * width_,
                       result.mutable_data<uint8_t>() + p * panel_bytes_);
    }
    return result;
  }

  template <class Rows>
  void multiply(const Rows& rows, float* c, uint8_t* working) const {
    for_shares(threads_, panels_, [&](int64_t begin, int64_t end, int thread) {
      multiply_block_panels({format_, rows_, packed_->data<uint8_t>(), begin, end, c}, rows,
                            working + thread * working_bytes());
    });
  }

  bool is_padded() const { return k_ != format_.depth(); }
  bool is_few() const { return rows_ <= kFewBlockRows; }
  int64_t working_bytes() const { return round_up(block_working_bytes(format_, rows_)); }
  static int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

  // Rows that are copied lie so far apart that the first cache holds a tile of them, whatever the depth is.
  int64_t spaced_stride() const { return format_.depth() + kSpace; }

  // ---- Rows as they are ------------------------------------------------------------------------------------------

  bool copies_rows() const { return is_padded() || !is_few(); }
  bool sums_rows() const { return is_few() && format_.has_zeros; }
  int64_t copied_bytes() const { return copies_rows() ? round_up(rows_ * spaced_stride() * kFloat) : 0; }
  int64_t float_rows_bytes() const { return copied_bytes() + (sums_rows() ? rows_ * format_.blocks * kFloat : 0); }

  FloatRows float_rows(const float* x, float* memory) const {
    FloatRows rows{x, k_, nullptr};
    if (copies_rows()) {
      rows = {memory, spaced_stride(), nullptr};
      for_shares(threads_, rows_, [&](int64_t begin, int64_t end, int /*thread*/) {
        for (int64_t row = begin; row < end; ++row) pad(x + row * k_, memory + row * spaced_stride());
      });
    }
    if (!sums_rows()) return rows;
    float* const sums = memory + copied_bytes() / kFloat;
    for (int64_t i = 0; i < rows_ * format_.blocks; ++i) {
      const float* const block = rows.numbers + i / format_.blocks * rows.stride + i % format_.blocks * format_.block;
      sums[i] = std::accumulate(block, block + format_.block, 0.0F);
    }
    rows.sums = sums;
    return rows;
  }

  void pad(const float* row, float* to) const { std::fill(std::copy_n(row, k_, to), to + format_.depth(), 0.0F); }

  // ---- Rounded rows ----------------------------------------------------------------------------------------------

  int64_t numbers_bytes() const { return round_up(rows_ * spaced_stride() * static_cast<int64_t>(sizeof(int16_t))); }
  int64_t scales_bytes() const { return round_up(rows_ * format_.blocks * kFloat); }
  int64_t padded_bytes() const { return is_padded() ? round_up(format_.depth() * kFloat) : 0; }
  int64_t rounded_rows_bytes() const { return numbers_bytes() + 2 * scales_bytes() + threads_ * padded_bytes(); }

  std::optional<RoundedRows> round_rows(const float* x, uint8_t* memory) const {
    const RoundedRows all{reinterpret_cast<int16_t*>(memory), spaced_stride(),
                          reinterpret_cast<float*>(memory + numbers_bytes()),
                          reinterpret_cast<float*>(memory + numbers_bytes() + scales_bytes())};
    uint8_t* const padded = memory + numbers_bytes() + 2 * scales_bytes();
    std::atomic<bool> is_rounded = true;
    for_shares(threads_, rows_, [&](int64_t begin, int64_t end, int thread) {
      for (int64_t row = begin; row < end; ++row) {
        const float* from = x + row * k_;
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

  const BlockFormat format_;
  const int64_t k_, rows_, width_, panels_, panel_bytes_;
  const bool rounds_;
  int threads_ = 1;
  std::shared_ptr<const Tensor> packed_;
};

std::string why_not(const KernelCall& call) {
  for (const Type& type : call.inputs) {
    if (type.is_tensor() && type.shape().num_elements() == 0) return "a tensor without elements";
  }
  const BlockFormat format = format_of(call);
  if (format.block % format.per_word() != 0) return "blocks that do not fill words";
  return why_not_known(call, {1, 2, 3}, "weights");
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<BlockMatmulKernel>(call), ""}; }

}  // namespace

KernelDef block_matmul_kernel() {
  return {.name = "cpu.block_matmul_simd", .op = block_matmul_def().name, .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph::simd
