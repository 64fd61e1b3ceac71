// matmul_integer on any CPU and in any form: stacks on both sides, zero points for the tensor or for each row and
// column. Constants on the right are packed once, where oneDNN packs them in each run.
#include <algorithm>
#include <vector>

#include "autograph/op_def.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/linear/integer_loops.h"
#include "backends/cpu/threads/parallel.h"
#include "base/aligned_size.h"
#include "ops/defs.h"
#include "ops/linear/matmul_shape.h"
#include "runtime/memory/packed_constants.h"

namespace autograph::simd {
namespace {

constexpr size_t kA = 0, kB = 1, kAZero = 2, kBZero = 3;

bool is_signed(const KernelCall& call, size_t slot) { return call.inputs[slot].dtype() == DType::i8; }

// Zero point number `i`, of one or of as many as there are.
int32_t zero_point(const KernelArgs& args, size_t slot, int64_t i) {
  if (slot >= args.inputs.size() || !args.inputs[slot].is_present()) return 0;
  const TensorView& zeros = args.inputs[slot];
  const int64_t at = zeros.num_elements() > 1 ? i : 0;
  return zeros.dtype() == DType::i8 ? zeros.data<int8_t>()[at] : zeros.data<uint8_t>()[at];
}

// Several rows of one matrix on the left with one matrix on the right.
struct Pairing {
  int64_t first_row;  // of all matrices on the left
  int64_t matrix;     // on the right
};

class IntegerMatmul : public Kernel {
 public:
  explicit IntegerMatmul(const KernelCall& call)
      : a_is_signed_(is_signed(call, kA)),
        b_is_signed_(is_signed(call, kB)),
        when_(call.constant(kB) ? PackedWhen::once : PackedWhen::each_run) {
    const Dims a = call.input_dims(kA), b = call.input_dims(kB);
    const MatmulWalk walk = walk_matmul(TensorView(DType::u8, a, nullptr), TensorView(DType::u8, b, nullptr));
    rows_of_matrix_ = rows_ = walk.size.rows;
    depth_ = walk.size.inner;
    columns_ = walk.size.columns;
    panels_ = (columns_ + width_ - 1) / width_;
    all_rows_ = *call.inputs[kA].shape().num_elements() / depth_;
    b_matrices_ = *call.inputs[kB].shape().num_elements() / (depth_ * columns_);
    if (b_matrices_ == 1) {
      rows_ = all_rows_;
      pairings_.push_back({0, 0});
    } else {
      for (size_t i = 0; i < walk.a_matrix.size(); ++i) {
        pairings_.push_back({walk.a_matrix[i] * rows_, walk.b_matrix[i]});
      }
    }
    const double products = static_cast<double>(rows_ * num_pairings() * columns_) * static_cast<double>(depth_);
    threads_ = useful_integer_threads(call.threads, products);
    if (const Tensor* constant = call.constant(kB)) {
      packed_ = PackedConstants::share(call.packed, {*constant}, "integer_matmul_simd", [&] {
        Tensor packed = Tensor::empty(DType::i8, {packed_bytes()});
        pack_integer_matrices(matrices_of(constant->raw()), 1, when_, packed.mutable_data<int8_t>());
        return packed;
      });
    }
  }

  size_t scratch_bytes() const override {
    return row_bytes() + term_bytes() + zero_bytes() + (packed_ ? 0 : static_cast<size_t>(packed_bytes()));
  }
  size_t weight_bytes() const override { return packed_ ? packed_->size_bytes() : 0; }
  bool reads_input(size_t slot) const override { return slot != kB || !packed_; }

  void run(const KernelArgs& args) const override {
    auto* const rows = static_cast<char*>(args.scratch);
    auto* const terms = reinterpret_cast<IntegerRow*>(rows + row_bytes());
    auto* const zeros = reinterpret_cast<int32_t*>(rows + row_bytes() + term_bytes());
    const int8_t* panels_of_b = packed_ ? packed_->data<int8_t>() : nullptr;
    if (!packed_) {
      auto* const to = static_cast<int8_t*>(args.scratch) + scratch_bytes() - packed_bytes();
      pack_integer_matrices(matrices_of(args.inputs[kB].raw()), threads_, when_, to);
      panels_of_b = to;
    }
    prepare_rows(args, rows, terms);
    fill_zeros(args, zeros);
    multiply(rows, terms, zeros, panels_of_b, static_cast<int32_t*>(args.outputs[0].raw()));
  }

 private:
  ByteMatrices matrices_of(const void* b) const {
    return {static_cast<const uint8_t*>(b), b_matrices_, depth_, columns_, b_is_signed_};
  }
  size_t row_bytes() const { return aligned_size(static_cast<size_t>(all_rows_ * integer_row_bytes(depth_, when_))); }
  size_t term_bytes() const { return aligned_size(static_cast<size_t>(all_rows_) * sizeof(IntegerRow)); }
  size_t zero_bytes() const { return aligned_size(static_cast<size_t>(panels_ * width_) * sizeof(int32_t)); }
  int64_t num_pairings() const { return static_cast<int64_t>(pairings_.size()); }
  int64_t matrix_bytes() const { return panels_ * integer_panel_bytes(depth_, when_); }
  int64_t packed_bytes() const { return b_matrices_ * matrix_bytes(); }

  // Zero points of the columns as packed, up to whole panels.
  void fill_zeros(const KernelArgs& args, int32_t* zeros) const {
    const int32_t shift = b_is_signed_ ? 0 : kUnsignedShift;
    int32_t* const end = zeros + panels_ * width_;
    if (args.inputs.size() <= kBZero || args.inputs[kBZero].num_elements() == 1) {
      return std::fill(zeros, end, zero_point(args, kBZero, 0) - shift);
    }
    for (int64_t column = 0; column < columns_; ++column) zeros[column] = zero_point(args, kBZero, column) - shift;
    std::fill(zeros + columns_, end, 0);
  }

  void prepare_rows(const KernelArgs& args, char* rows, IntegerRow* terms) const {
    const auto* a = static_cast<const uint8_t*>(args.inputs[kA].raw());
    for_shares(useful_threads(threads_, all_rows_ * depth_ / 4), all_rows_, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        terms[row] =
            prepare_integer_row(a + row * depth_, a_is_signed_, zero_point(args, kAZero, row % rows_of_matrix_), depth_,
                                when_, rows + row * integer_row_bytes(depth_, when_));
      }
    });
  }

  // What every thread reads is the smaller one of both sides.
  void multiply(const char* rows, const IntegerRow* terms, const int32_t* zeros, const int8_t* b, int32_t* y) const {
    const bool shares_columns = rows_ < columns_;
    const int64_t step = shares_columns ? width_ : integer_tile_rows();
    const int64_t extent = shares_columns ? columns_ : rows_;
    const int64_t steps = (extent + step - 1) / step;
    for_shares(threads_, num_pairings() * steps, [&](int64_t begin, int64_t end, int) {
      for (int64_t at = begin; at < end;) {
        const int64_t number = at / steps, first = at % steps, last = std::min(steps, first + end - at);
        const int64_t from = first * step, to = std::min(last * step, extent);
        const Pairing& pairing = pairings_[static_cast<size_t>(number)];
        const int64_t row = shares_columns ? 0 : from, column = shares_columns ? from : 0;
        const int64_t left = pairing.first_row + row;
        multiply_integers(
            {.rows = rows + left * integer_row_bytes(depth_, when_),
             .terms = terms + left,
             .count = shares_columns ? rows_ : to - from,
             .depth = depth_,
             .panels = b + pairing.matrix * matrix_bytes() + column / width_ * integer_panel_bytes(depth_, when_),
             .packed = when_,
             .columns = shares_columns ? to - from : columns_,
             .zeros = zeros + column,
             .y = y + (number * rows_ + row) * columns_ + column,
             .y_stride = columns_});
        at += last - first;
      }
    });
  }

  bool a_is_signed_, b_is_signed_;
  PackedWhen when_;
  int64_t rows_ = 0, rows_of_matrix_ = 0, depth_ = 0, columns_ = 0;
  int64_t all_rows_ = 0;  // of all matrices on the left
  int64_t b_matrices_ = 0;
  int64_t width_ = integer_panel_width(), panels_ = 0;  // of b
  std::vector<Pairing> pairings_;                       // by matrix of the output
  int threads_ = 1;
  std::shared_ptr<const Tensor> packed_;  // b, when it is a constant
};

std::string why_not(const KernelCall& call) {
  for (const size_t slot : {kA, kB}) {
    if (call.inputs[slot].shape().num_elements() == 0) return "a tensor without elements";
  }
  return call.outputs[0].shape().num_elements() == 0 ? "a tensor without elements" : "";
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<IntegerMatmul>(call), ""}; }

}  // namespace

KernelDef integer_matmul_kernel() {
  return {.name = "cpu.integer_matmul_simd",
          .op = matmul_integer_def().name,
          .why_not = why_not,
          .prepare = prepare,
          .variants = integer_variants};
}

}  // namespace autograph::simd
