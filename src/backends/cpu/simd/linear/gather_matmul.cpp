// gather_matmul, gather_block_matmul: rows that chose the same matrix stand together and meet its panels once, packed
// floats (recurrent_cells.h) or packed numbers of 4 or 8 bits (block_products.h). Threads share columns, so that all
// have the same to do whichever matrices were chosen, and none waits for weights that another one reads.
#include <algorithm>
#include <memory>

#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/linear/packed_blocks.h"
#include "backends/cpu/simd/recurrent/recurrent_cells.h"
#include "backends/cpu/threads/parallel.h"
#include "backends/cpu/weights_kernel.h"
#include "ops/defs.h"
#include "ops/index/index_check.h"

namespace autograph::simd {
namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// The pairs of a token and a choice, those of one matrix together.
class Choices {
 public:
  Choices(const KernelCall& call, const OpDef& op)
      : op_(op),
        choices_(call.input_dims(1)[1]),
        pairs_(call.input_dims(1)[0] * choices_),
        rows_(call.input_dims(0)[1]),
        k_(call.input_dims(0)[2]),
        matrices_(call.input_dims(2)[0]) {}

  int64_t pairs() const { return pairs_; }
  int64_t matrices() const { return matrices_; }
  int64_t bytes() const { return round_up((matrices_ + 1 + pairs_) * static_cast<int64_t>(sizeof(int64_t))); }

  // Where pairs are once they are sorted.
  struct Groups {
    const int64_t* begin;  // by matrix, and the end of the last
    const int64_t* pair;   // by place

    int64_t count(int64_t matrix) const { return begin[matrix + 1] - begin[matrix]; }
  };

  Groups group(const TensorView& index, void* memory) const {
    auto* const begin = static_cast<int64_t*>(memory);
    int64_t* const pair = begin + matrices_ + 1;
    const auto* const given = index.data<int64_t>();
    const auto matrix_of = [&](int64_t i) { return checked_index(op_.name, given[i], matrices_); };
    std::fill_n(begin, matrices_ + 1, 0);
    for (int64_t i = 0; i < pairs_; ++i) ++begin[matrix_of(i) + 1];
    for (int64_t m = 0; m < matrices_; ++m) begin[m + 1] += begin[m];
    for (int64_t i = 0; i < pairs_; ++i) pair[begin[matrix_of(i)]++] = i;
    // Each begin is now the next one's.
    std::copy_backward(begin, begin + matrices_, begin + matrices_ + 1);
    begin[0] = 0;
    return {begin, pair};
  }

  const float* row_of(const float* x, int64_t pair) const { return x + (rows_ == 1 ? pair / choices_ : pair) * k_; }

 private:
  const OpDef& op_;
  int64_t choices_, pairs_, rows_, k_, matrices_;
};

// ---- Floats ----------------------------------------------------------------------------------------------------

class GatherMatmul : public WeightsKernel {
 public:
  explicit GatherMatmul(const KernelCall& call) : choices_(call, gather_matmul_def()), width_(gate_width()) {
    const Dims w = call.input_dims(2);
    n_ = w[1], k_ = w[2], matrix_size_ = packed_gates_size(1, n_, k_);
    const auto pack = [this](const std::vector<Tensor>& weights, float* to) {
      std::vector<float> scratch(static_cast<size_t>(width_ * k_));
      for (int64_t m = 0; m < choices_.matrices(); ++m) {
        pack_gates(weights[0].data<float>() + m * n_ * k_, 1, n_, k_, scratch.data(), to + m * matrix_size_);
      }
    };
    w_ = &packed(call, {KnownWeight::of(call, 2)}, {"gather_matmul_simd", choices_.matrices() * matrix_size_, pack});
    blocks_ = (n_ + width_ - 1) / width_;
    chunk_ = std::min(choices_.pairs(), kMostRows);
    threads_ = useful_threads(call.threads, std::max<int64_t>(choices_.pairs(), 8) * n_ * k_ / 16);
  }

  bool reads_input(size_t slot) const override { return slot != 2; }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(choices_.bytes() + rows_bytes() + threads_ * chunk_ * width_ * kFloat);
  }

  void run(const KernelArgs& args) const override {
    auto* const memory = static_cast<uint8_t*>(args.scratch);
    const Choices::Groups groups = choices_.group(args.inputs[1], memory);
    auto* const rows = reinterpret_cast<float*>(memory + choices_.bytes());
    auto* const sums = reinterpret_cast<float*>(memory + choices_.bytes() + rows_bytes());
    const auto* const x = args.inputs[0].data<float>();
    for (int64_t i = 0; i < choices_.pairs(); ++i) {
      std::copy_n(choices_.row_of(x, groups.pair[i]), k_, rows + i * k_);
    }
    auto* const y = args.outputs[0].mutable_data<float>();
    for_shares(threads_, blocks_, [&](int64_t begin, int64_t end, int thread) {
      for (int64_t m = 0; m < choices_.matrices(); ++m) {
        if (groups.count(m) == 0) continue;
        for (int64_t b = begin; b < end; ++b) multiply(groups, m, b, rows, sums + thread * chunk_ * width_, y);
      }
    });
  }

 private:
  static constexpr int64_t kMostRows = 256;  // that meet a panel in one go

  int64_t rows_bytes() const { return round_up(choices_.pairs() * k_ * kFloat); }

  // One block of columns of the rows of one matrix.
  void multiply(const Choices::Groups& groups, int64_t matrix, int64_t block, const float* rows, float* sums,
                float* y) const {
    const float* const panel = w_->data() + matrix * matrix_size_ + block * width_ * k_;
    const int64_t columns = std::min(width_, n_ - block * width_);
    for (int64_t first = groups.begin[matrix]; first < groups.begin[matrix + 1]; first += chunk_) {
      const int64_t count = std::min(chunk_, groups.begin[matrix + 1] - first);
      multiply_gates({rows + first * k_, k_, count, k_, panel, 1, sums, width_});
      for (int64_t i = 0; i < count; ++i) {
        std::copy_n(sums + i * width_, columns, y + groups.pair[first + i] * n_ + block * width_);
      }
    }
  }

  const Choices choices_;
  const int64_t width_;
  int64_t n_ = 0, k_ = 0, matrix_size_ = 0, blocks_ = 0, chunk_ = 1;
  const PackedWeights* w_ = nullptr;
  int threads_ = 1;
};

std::string why_not_floats(const KernelCall& call) {
  if (std::string reason = why_not_empty(call); !reason.empty()) return reason;
  if (call.inputs[0].dtype() != DType::f32) return "elements that are not f32";
  return why_not_known(call, {2}, "weights");
}

// ---- Numbers of 4 or 8 bits ------------------------------------------------------------------------------------

constexpr size_t kQ = 2;

class GatherBlockMatmul : public Kernel {
 public:
  explicit GatherBlockMatmul(const KernelCall& call)
      : choices_(call, gather_block_matmul_def()),
        weights_(call, kQ),
        n_(weights_.format().n),
        threads_(weights_.useful_threads_for(call.threads, choices_.pairs())) {}

  size_t weight_bytes() const override { return weights_.size_bytes(); }
  bool reads_input(size_t slot) const override { return slot < 2; }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(choices_.bytes() + products_bytes() + threads_ * working_bytes() + all_rows().bytes());
  }

  void run(const KernelArgs& args) const override {
    auto* const memory = static_cast<uint8_t*>(args.scratch);
    const Choices::Groups groups = choices_.group(args.inputs[1], memory);
    auto* const products = reinterpret_cast<float*>(memory + choices_.bytes());
    uint8_t* const working = memory + choices_.bytes() + products_bytes();
    const auto* const x = args.inputs[0].data<float>();
    all_rows().with_rows([&](int64_t i) { return choices_.row_of(x, groups.pair[i]); },
                         working + threads_ * working_bytes(),
                         [&](const auto& rows) { multiply(groups, rows, products, working); });
    auto* const y = args.outputs[0].mutable_data<float>();
    for_shares(threads_, choices_.pairs(), [&](int64_t begin, int64_t end, int /*thread*/) {
      for (int64_t i = begin; i < end; ++i) {
        std::copy_n(products + i * n_, n_, y + groups.pair[i] * n_);
      }
    });
  }

 private:
  template <class Rows>
  void multiply(const Choices::Groups& groups, const Rows& rows, float* products, uint8_t* working) const {
    for_shares(threads_, weights_.num_panels(), [&](int64_t begin, int64_t end, int thread) {
      for (int64_t m = 0; m < choices_.matrices(); ++m) {
        const int64_t first = groups.begin[m], count = groups.count(m);
        if (count == 0) continue;
        multiply_block_panels({weights_.format(), count, weights_.matrix(m), begin, end, products + first * n_},
                              rows.from(weights_.format(), first), working + thread * working_bytes());
      }
    });
  }

  BlockRows all_rows() const { return weights_.rows(choices_.pairs(), /*in_groups=*/true, threads_); }
  int64_t products_bytes() const { return round_up(choices_.pairs() * n_ * kFloat); }
  int64_t working_bytes() const { return weights_.working_bytes(choices_.pairs()); }

  const Choices choices_;
  const PackedBlocks weights_;
  const int64_t n_;
  const int threads_;
};

std::string why_not_blocks(const KernelCall& call) { return why_not_packed_blocks(call, kQ); }

template <class K>
Prepared prepare(const KernelCall& call) {
  return {std::make_unique<K>(call), ""};
}

}  // namespace

std::vector<KernelDef> gather_matmul_kernels() {
  return {{.name = "cpu.gather_matmul_simd",
           .op = gather_matmul_def().name,
           .why_not = why_not_floats,
           .prepare = prepare<GatherMatmul>},
          {.name = "cpu.gather_block_matmul_simd",
           .op = gather_block_matmul_def().name,
           .why_not = why_not_blocks,
           .prepare = prepare<GatherBlockMatmul>}};
}

}  // namespace autograph::simd
