// block_matmul: panels of packed weights, shared out among the threads (block_products.h).
#include <fmt/format.h>

#include <algorithm>
#include <vector>

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
        panel_bytes_(block_panel_bytes(format_)) {
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
    return static_cast<size_t>(padded_size() + sums_size() + threads_ * thread_size()) * sizeof(float);
  }

  void run(const KernelArgs& args) const override {
    auto* const scratch = static_cast<float*>(args.scratch);
    const float* a = args.inputs[0].data<float>();
    if (is_padded()) a = pad(a, scratch);
    float* const sums = scratch + padded_size();
    if (sums_size() > 0) sum_blocks(a, sums);
    float* const of_threads = sums + sums_size();
    float* const c = args.outputs[0].mutable_data<float>();
    for_shares(threads_, panels_, [&](int64_t begin, int64_t end, int thread) {
      float* const unpacked = of_threads + thread * thread_size();
      for (int64_t p = begin; p < end; ++p) run_panel(p, a, sums, c, unpacked);
    });
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

  bool is_padded() const { return k_ != format_.depth(); }
  int64_t padded_size() const { return is_padded() ? round_up(rows_ * format_.depth()) : 0; }
  bool is_few() const { return rows_ <= kFewBlockRows; }
  int64_t sums_size() const { return is_few() && format_.has_zeros ? round_up(rows_ * format_.blocks) : 0; }
  int64_t unpacked_size() const { return is_few() ? 0 : round_up(block_unpacked_size(format_)); }
  // Behind the unpacked rows: a panel of results, for the last one, which may hang over the end.
  int64_t thread_size() const { return unpacked_size() + round_up(rows_ * width_); }
  static int64_t round_up(int64_t count) { return (count + 15) / 16 * 16; }

  const float* pad(const float* a, float* to) const {
    for (int64_t row = 0; row < rows_; ++row) {
      float* const at = to + row * format_.depth();
      std::fill(std::copy_n(a + row * k_, k_, at), at + format_.depth(), 0.0F);
    }
    return to;
  }

  void sum_blocks(const float* a, float* sums) const {
    for (int64_t i = 0; i < rows_ * format_.blocks; ++i) {
      float sum = 0;
      for (int64_t k = 0; k < format_.block; ++k) sum += a[i * format_.block + k];
      sums[i] = sum;
    }
  }

  void run_panel(int64_t p, const float* a, const float* sums, float* c, float* unpacked) const {
    const int64_t first = p * width_, count = std::min(width_, format_.n - first);
    const bool hangs_over = count < width_;
    float* const buffer = unpacked + unpacked_size();
    multiply_block_panel({.format = format_,
                          .a = a,
                          .a_stride = format_.depth(),
                          .sums = sums,
                          .rows = rows_,
                          .panel = packed_->data<uint8_t>() + p * panel_bytes_,
                          .c = hangs_over ? buffer : c + first,
                          .c_stride = hangs_over ? width_ : format_.n},
                         unpacked);
    for (int64_t row = 0; hangs_over && row < rows_; ++row) {
      std::copy_n(buffer + row * width_, count, c + row * format_.n + first);
    }
  }

  const BlockFormat format_;
  const int64_t k_, rows_, width_, panels_, panel_bytes_;
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
