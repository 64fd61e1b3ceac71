// block_matmul: panels of packed weights, shared out among the threads (block_products.h), times rows as they are or,
// where the call lets kernels do so, rounded to 16 bits.
#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/known_inputs.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/linear/block_products.h"
#include "backends/cpu/simd/linear/block_rows.h"
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
  size_t scratch_bytes() const override { return static_cast<size_t>(all_rows().bytes() + threads_ * working_bytes()); }

  void run(const KernelArgs& args) const override {
    const auto* const x = args.inputs[0].data<float>();
    auto* const c = args.outputs[0].mutable_data<float>();
    auto* const working = static_cast<uint8_t*>(args.scratch);
    all_rows().with_rows([&](int64_t row) { return x + row * k_; }, working + threads_ * working_bytes(),
                         [&](const auto& rows) { multiply(rows, c, working); });
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

  BlockRows all_rows() const { return {format_, k_, rows_, {.rounds = rounds_, .threads = threads_}}; }
  int64_t working_bytes() const { return (block_working_bytes(format_, rows_) + 63) / 64 * 64; }

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
