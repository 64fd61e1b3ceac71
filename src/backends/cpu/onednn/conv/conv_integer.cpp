// conv_integer whose zero point is computed while the model runs, as models that quantize their activations then have
// it: the inputs of some output pixels are copied to the columns of a matrix, and oneDNN's integer gemm multiplies the
// weights by it. Padding is the zero point.
//
// That matrix has to be signed: u8 becomes i8 by turning its highest bit round on the way.
#include <algorithm>

#include "autograph/op_def.h"
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/onednn/int8.h"
#include "backends/cpu/onednn/onednn_ops.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/quantize/integer_windows.h"
#include "backends/cpu/threads/parallel.h"
#include "base/check.h"
#include "ops/defs.h"

namespace autograph::onednn {
namespace {

constexpr size_t kXZero = 2;
constexpr size_t kWZero = 3;
constexpr int64_t kColumnBytes = 1 << 19;  // of a matrix of columns: half of a usual second cache

std::string why_not(const KernelCall& call) {
  if (!has_vnni()) return "a CPU without VNNI, where sums of bytes may overflow";
  if (call.input_dims(0).size() < 3 || call.input_dims(0).size() > 5) return "1 to 3 spatial dims only";
  if (!call.has_input(kXZero) || call.constant(kXZero)) return "a zero point that is known";
  if (call.has_input(kWZero) && call.inputs[kWZero].shape().num_elements() != 1) return "a zero point per channel";
  for (const Type& type : {call.inputs[0], call.inputs[1], call.outputs[0]}) {
    if (type.shape().num_elements() == 0) return "a tensor without elements";
  }
  return "";
}

uint8_t byte_of(const KernelArgs& args, size_t slot) {
  const bool is_given = slot < args.inputs.size() && args.inputs[slot].is_present();
  return is_given ? *static_cast<const uint8_t*>(args.inputs[slot].raw()) : uint8_t{0};
}

class IntegerConv : public Kernel {
 public:
  explicit IntegerConv(const KernelCall& call)
      : x_is_signed_(call.inputs[0].dtype() == DType::i8),
        w_is_signed_(call.inputs[1].dtype() == DType::i8),
        images_(call.input_dims(0)[0]),
        groups_(call.attributes.integer("group")),
        channels_(call.input_dims(1)[1]),
        outputs_(call.input_dims(1)[0] / groups_),
        threads_(call.threads),
        windows_(call) {
    const int64_t row = windows_.row();
    chunk_ = std::min(windows_.pixels(), std::max<int64_t>(1, kColumnBytes / depth() / row) * row);
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(depth() * chunk_); }

  void run(const KernelArgs& args) const override {
    const auto* x = static_cast<const uint8_t*>(args.inputs[0].raw());
    const auto* w = static_cast<const uint8_t*>(args.inputs[1].raw());
    auto* y = static_cast<int32_t*>(args.outputs[0].raw());
    auto* columns = static_cast<uint8_t*>(args.scratch);
    const uint8_t turn = x_is_signed_ ? 0 : 128;
    const auto zero = static_cast<uint8_t>(byte_of(args, kXZero) ^ turn);
    for (int64_t part = 0; part < images_ * groups_; ++part) {
      const uint8_t* from = x + part * channels_ * windows_.inputs();
      for (int64_t begin = 0; begin < windows_.pixels(); begin += chunk_) {
        const int64_t count = std::min(chunk_, windows_.pixels() - begin);
        fill_columns(from, turn, zero, begin, count, columns);
        multiply(w + part % groups_ * outputs_ * depth(), byte_of(args, kWZero), columns, zero, count,
                 y + part * outputs_ * windows_.pixels() + begin);
      }
    }
  }

 private:
  int64_t depth() const { return channels_ * windows_.taps(); }

  // columns[channel and tap, pixel] for output pixels [begin, begin + count).
  void fill_columns(const uint8_t* x, uint8_t turn, uint8_t zero, int64_t begin, int64_t count,
                    uint8_t* columns) const {
    const IntegerWindows::Pixel start = windows_.pixel(begin);
    for_shares(useful_threads(threads_, depth() * count / 8), depth(), [&](int64_t first, int64_t last, int) {
      for (int64_t k = first; k < last; ++k) {
        windows_.fill(x + k / windows_.taps() * windows_.inputs(), k % windows_.taps(), start, count, turn, zero,
                      columns + k * count);
      }
    });
  }

  void multiply(const uint8_t* w, uint8_t w_zero, const uint8_t* columns, uint8_t zero, int64_t count,
                int32_t* y) const {
    const auto* right = reinterpret_cast<const int8_t*>(columns);
    const auto right_zero = static_cast<int8_t>(zero);
    const int32_t no_offset = 0;
    const dnnl_status_t status =
        w_is_signed_ ? dnnl_gemm_s8s8s32('N', 'N', 'F', outputs_, count, depth(), 1, reinterpret_cast<const int8_t*>(w),
                                         depth(), static_cast<int8_t>(w_zero), right, count, right_zero, 0, y,
                                         windows_.pixels(), &no_offset)
                     : dnnl_gemm_u8s8s32('N', 'N', 'F', outputs_, count, depth(), 1, w, depth(), w_zero, right, count,
                                         right_zero, 0, y, windows_.pixels(), &no_offset);
    AG_CHECK(status == dnnl_success, "oneDNN integer gemm gave status {}", static_cast<int>(status));
  }

  const bool x_is_signed_, w_is_signed_;
  const int64_t images_, groups_;
  const int64_t channels_, outputs_;  // of a group
  const int threads_;
  const IntegerWindows windows_;
  int64_t chunk_ = 1;  // pixels whose columns are filled at a time
};

Prepared prepare(const KernelCall& call) { return {std::make_unique<IntegerConv>(call), ""}; }

}  // namespace

KernelDef conv_integer_kernel() {
  return {.name = "cpu.conv_integer_onednn",
          .op = conv_integer_def().name,
          .why_not = why_not,
          .prepare = prepare,
          .variants = integer_gemm_variants};
}

}  // namespace autograph::onednn
