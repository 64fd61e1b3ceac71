// block_matmul: panels of packed weights, shared out among the threads (block_products.h), times rows as they are or,
// where the call lets kernels do so, rounded to 16 bits.
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/linear/packed_blocks.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"

namespace autograph::simd {
namespace {

constexpr size_t kQ = 1;

class BlockMatmulKernel : public Kernel {
 public:
  explicit BlockMatmulKernel(const KernelCall& call)
      : weights_(call, kQ),
        rows_(call.inputs[0].shape().num_elements().value() / weights_.k()),
        threads_(weights_.useful_threads_for(call.threads, rows_)) {}

  size_t weight_bytes() const override { return weights_.size_bytes(); }
  bool reads_input(size_t slot) const override { return slot == 0; }
  size_t scratch_bytes() const override { return static_cast<size_t>(all_rows().bytes() + threads_ * working_bytes()); }

  void run(const KernelArgs& args) const override {
    const auto* const x = args.inputs[0].data<float>();
    auto* const c = args.outputs[0].mutable_data<float>();
    auto* const working = static_cast<uint8_t*>(args.scratch);
    all_rows().with_rows([&](int64_t row) { return x + row * weights_.k(); }, working + threads_ * working_bytes(),
                         [&](const auto& rows) { multiply(rows, c, working); });
  }

 private:
  template <class Rows>
  void multiply(const Rows& rows, float* c, uint8_t* working) const {
    for_shares(threads_, weights_.num_panels(), [&](int64_t begin, int64_t end, int thread) {
      multiply_block_panels({weights_.format(), rows_, weights_.matrix(0), begin, end, c}, rows,
                            working + thread * working_bytes());
    });
  }

  BlockRows all_rows() const { return weights_.rows(rows_, /*in_groups=*/false, threads_); }
  int64_t working_bytes() const { return weights_.working_bytes(rows_); }

  const PackedBlocks weights_;
  const int64_t rows_;
  const int threads_;
};

std::string why_not(const KernelCall& call) { return why_not_packed_blocks(call, kQ); }

Prepared prepare(const KernelCall& call) { return {std::make_unique<BlockMatmulKernel>(call), ""}; }

}  // namespace

KernelDef block_matmul_kernel() {
  return {.name = "cpu.block_matmul_simd", .op = block_matmul_def().name, .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph::simd
