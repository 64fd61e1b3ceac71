// Casts between f32 and the half-precision dtypes, which stand at the edges of models in half precision.
#include "autograph/small_float.h"
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/multiversion.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"

namespace autograph {
namespace {

AG_MULTIVERSION void widen_f16(const void* from, void* to, int64_t count) {
  const auto* in = static_cast<const uint16_t*>(from);
  auto* out = static_cast<float*>(to);
  for (int64_t i = 0; i < count; ++i) out[i] = binary16_to_float(in[i]);
}

AG_MULTIVERSION void narrow_f16(const void* from, void* to, int64_t count) {
  const auto* in = static_cast<const float*>(from);
  auto* out = static_cast<uint16_t*>(to);
  for (int64_t i = 0; i < count; ++i) out[i] = float_to_binary16(in[i]);
}

AG_MULTIVERSION void widen_bf16(const void* from, void* to, int64_t count) {
  const auto* in = static_cast<const BFloat16*>(from);
  auto* out = static_cast<float*>(to);
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]);
}

AG_MULTIVERSION void narrow_bf16(const void* from, void* to, int64_t count) {
  const auto* in = static_cast<const float*>(from);
  auto* out = static_cast<BFloat16*>(to);
  for (int64_t i = 0; i < count; ++i) out[i] = BFloat16(in[i]);
}

using Loop = void (*)(const void*, void*, int64_t);

Loop loop_for(DType from, DType to) {
  if (from == DType::f16 && to == DType::f32) return widen_f16;
  if (from == DType::f32 && to == DType::f16) return narrow_f16;
  if (from == DType::bf16 && to == DType::f32) return widen_bf16;
  if (from == DType::f32 && to == DType::bf16) return narrow_bf16;
  return nullptr;
}

class HalfCastKernel : public Kernel {
 public:
  explicit HalfCastKernel(const KernelCall& call)
      : loop_(loop_for(call.inputs[0].dtype(), call.outputs[0].dtype())),
        in_bytes_(static_cast<int64_t>(element_size(call.inputs[0].dtype()))),
        out_bytes_(static_cast<int64_t>(element_size(call.outputs[0].dtype()))),
        count_(call.outputs[0].shape().num_elements().value()),
        threads_(useful_threads(call.threads, count_)) {}

  void run(const KernelArgs& args) const override {
    const auto* in = static_cast<const char*>(args.inputs[0].raw());
    auto* out = args.outputs[0].mutable_data<char>();
    for_shares(threads_, count_, [&](int64_t begin, int64_t end, int) {
      loop_(in + begin * in_bytes_, out + begin * out_bytes_, end - begin);
    });
  }

 private:
  const Loop loop_;
  const int64_t in_bytes_, out_bytes_;
  const int64_t count_;
  const int threads_;
};

std::string why_not(const KernelCall& call) {
  const bool is_known = loop_for(call.inputs[0].dtype(), call.outputs[0].dtype()) != nullptr;
  return is_known ? "" : "no cast between f32 and half precision";
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<HalfCastKernel>(call), ""}; }

}  // namespace

KernelDef half_cast_kernel() {
  return {.name = "cpu.half_cast", .op = cast_def().name, .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph
