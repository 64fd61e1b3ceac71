// matmul_integer with a stack of rows on the left and one matrix on the right, by oneDNN's integer gemm. It sums in 32
// bits without a detour over floats, and takes zero points as they come, which models that quantize while they run
// compute from the data.
//
// The matrix has to be signed: u8 becomes i8 by turning its highest bit round, constants once.
#include "autograph/op_def.h"
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/onednn/int8.h"
#include "backends/cpu/onednn/onednn_ops.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "base/check.h"
#include "ops/defs.h"
#include "runtime/memory/packed_constants.h"

namespace autograph::onednn {
namespace {

constexpr size_t kAZero = 2;
constexpr size_t kBZero = 3;
constexpr int kHighestBit = 128;

std::string why_not(const KernelCall& call) {
  if (!has_vnni()) return "a CPU without VNNI, where sums of bytes may overflow";
  if (call.input_dims(0).empty() || call.input_dims(1).size() != 2) return "a stack of matrices on the right";
  for (const size_t slot : {size_t{0}, size_t{1}}) {
    if (call.inputs[slot].shape().num_elements() == 0) return "a tensor without elements";
  }
  for (const size_t slot : {kAZero, kBZero}) {
    if (call.has_input(slot) && call.inputs[slot].shape().num_elements() != 1) return "a zero point per row or column";
  }
  return "";
}

void turn_highest_bit(const void* from, void* to, int64_t count) {
  const auto* source = static_cast<const uint8_t*>(from);
  auto* target = static_cast<uint8_t*>(to);
  for (int64_t i = 0; i < count; ++i) target[i] = source[i] ^ kHighestBit;
}

int zero_point(const KernelArgs& args, size_t slot) {
  if (slot >= args.inputs.size() || !args.inputs[slot].is_present()) return 0;
  const TensorView& zero = args.inputs[slot];
  return zero.dtype() == DType::i8 ? static_cast<int>(*zero.data<int8_t>()) : static_cast<int>(*zero.data<uint8_t>());
}

class IntegerProduct : public Kernel {
 public:
  explicit IntegerProduct(const KernelCall& call)
      : k_(call.input_dims(1)[0]),
        n_(call.input_dims(1)[1]),
        m_(*call.inputs[0].shape().num_elements() / k_),
        a_is_signed_(call.inputs[0].dtype() == DType::i8),
        b_is_signed_(call.inputs[1].dtype() == DType::i8) {
    if (b_is_signed_ || !call.constant(1)) return;
    turned_ = PackedConstants::share(call.packed, {*call.constant(1)}, matmul_integer_def().name, [&] {
      Tensor turned = Tensor::empty(DType::u8, {k_, n_});
      turn_highest_bit(call.constant(1)->raw(), turned.mutable_raw(), k_ * n_);
      return turned;
    });
  }

  size_t scratch_bytes() const override { return b_is_signed_ || turned_ ? 0 : static_cast<size_t>(k_ * n_); }
  size_t weight_bytes() const override { return turned_ ? turned_->size_bytes() : 0; }
  bool reads_input(size_t slot) const override { return slot != 1 || !turned_; }

  void run(const KernelArgs& args) const override {
    const void* b = args.inputs[1].raw();
    if (turned_) {
      b = turned_->raw();
    } else if (!b_is_signed_) {
      turn_highest_bit(b, args.scratch, k_ * n_);
      b = args.scratch;
    }
    const auto b_zero = static_cast<int8_t>(zero_point(args, kBZero) - (b_is_signed_ ? 0 : kHighestBit));
    const int a_zero = zero_point(args, kAZero);
    const auto* right = static_cast<const int8_t*>(b);
    auto* y = static_cast<int32_t*>(args.outputs[0].raw());
    const int32_t no_offset = 0;
    const dnnl_status_t status =
        a_is_signed_
            ? dnnl_gemm_s8s8s32('N', 'N', 'F', m_, n_, k_, 1, static_cast<const int8_t*>(args.inputs[0].raw()), k_,
                                static_cast<int8_t>(a_zero), right, n_, b_zero, 0, y, n_, &no_offset)
            : dnnl_gemm_u8s8s32('N', 'N', 'F', m_, n_, k_, 1, static_cast<const uint8_t*>(args.inputs[0].raw()), k_,
                                static_cast<uint8_t>(a_zero), right, n_, b_zero, 0, y, n_, &no_offset);
    AG_CHECK(status == dnnl_success, "oneDNN integer gemm gave status {}", static_cast<int>(status));
  }

 private:
  int64_t k_, n_, m_;
  bool a_is_signed_, b_is_signed_;
  std::shared_ptr<const Tensor> turned_;  // b as i8, when it is a constant of u8
};

Prepared prepare(const KernelCall& call) { return {std::make_unique<IntegerProduct>(call), ""}; }

}  // namespace

KernelDef matmul_integer_kernel() {
  return {.name = "cpu.matmul_integer_onednn",
          .op = matmul_integer_def().name,
          .why_not = why_not,
          .prepare = prepare,
          .variants = integer_gemm_variants};
}

}  // namespace autograph::onednn
