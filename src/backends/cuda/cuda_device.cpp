#include "backends/cuda/cuda_device.h"

#include <fmt/core.h>

#include "autograph/executor.h"
#include "backends/cuda/cudnn_conv.h"
#include "backends/cuda/generated_kernel.h"
#include "backends/cuda/libraries/cublaslt.h"
#include "backends/cuda/stream.h"
#include "backends/gpu/emit/emitted.h"
#include "backends/gpu/emit/text/epilogue.h"
#include "backends/gpu/numbered_device.h"
#include "ops/defs.h"

namespace autograph {
namespace cuda {
namespace {

constexpr std::string_view kName = "cuda";

// A product that a library takes is better there, with what follows it as a kernel of its own; "" for all others.
std::string why_not_fused_product(const Machine& machine, const KernelCall& call) {
  if (&call.op != &fused_def()) return "";
  for (const OpDef* op : {&matmul_def(), &gemm_def(), &conv_def()}) {
    const gpu::Epilogue fused(call, *op);
    if (!fused.refusal().empty()) continue;
    const KernelCall product = fused.producer();
    const bool is_conv = op == &conv_def();
    if ((is_conv ? why_not_dnn_conv(machine, product) : why_not_lt_product(machine, product)).empty()) {
      return fmt::format("{} takes the {}", is_conv ? "cuDNN" : "cuBLASLt", op->name);
    }
  }
  return "";
}

template <size_t number>
KernelDef generated_kernel() {
  return {.name = "cuda.generated",
          .op = "",
          .why_not =
              [](const KernelCall& call) {
                const std::string reason = why_not_fused_product(get_machine(number), call);
                return reason.empty() ? why_not_generated(get_machine(number), call) : reason;
              },
          .prepare = [](const KernelCall& call) { return prepare_generated(get_machine(number), call); }};
}

template <size_t number, Precision precision>
KernelDef lt_product_kernel() {
  return {.name = "cuda.cublaslt",
          .op = "",
          .why_not = [](const KernelCall& call) { return why_not_lt_product(get_machine(number), call); },
          .prepare = [](const KernelCall& call) { return prepare_lt_product(get_machine(number), call, precision); },
          .variants = [](const KernelCall& call) { return lt_product_variants(get_machine(number), call, precision); }};
}

template <size_t number, Precision precision>
KernelDef dnn_conv_kernel() {
  return {.name = "cuda.cudnn",
          .op = "",
          .why_not = [](const KernelCall& call) { return why_not_dnn_conv(get_machine(number), call); },
          .prepare = [](const KernelCall& call) { return prepare_dnn_conv(get_machine(number), call, precision); },
          .variants = [](const KernelCall& call) { return dnn_conv_variants(get_machine(number), call, precision); }};
}

// The libraries first: what they and the emitter offer for one call is measured.
template <size_t number, Precision precision>
std::vector<KernelDef> kernels_of() {
  std::vector<KernelDef> kernels;
  const auto add = [&](KernelDef def, const OpDef& op) {
    def.op = op.name;
    kernels.push_back(def);
  };
  add(lt_product_kernel<number, precision>(), matmul_def());
  add(lt_product_kernel<number, precision>(), gemm_def());
  add(dnn_conv_kernel<number, precision>(), conv_def());
  gpu::add_emitted(kernels, generated_kernel<number>());
  return kernels;
}

template <size_t... numbers>
std::vector<KernelDef> kernels_of(size_t number, Precision precision, std::index_sequence<numbers...>) {
  using Make = std::vector<KernelDef> (*)();
  static constexpr Make kExact[] = {kernels_of<numbers, Precision::f32>...};
  static constexpr Make kNarrow[] = {kernels_of<numbers, Precision::bf16>...};
  return (precision == Precision::f32 ? kExact : kNarrow)[number]();
}

class CudaDevice : public Device {
 public:
  CudaDevice(const std::string& name, size_t number, Precision precision)
      : Device(name),
        machine_(get_machine(number)),
        catalog_(kernels_of(number, precision, std::make_index_sequence<gpu::kMaxDevices>())) {
    if (precision == Precision::f32) narrow_ = std::make_unique<CudaDevice>(name, number, Precision::bf16);
  }

  std::string identity() const override { return machine_.identity(); }
  DeviceProperties properties() const override { return {.max_streams = 8, .sync_us = 3}; }
  const KernelCatalog& catalog() const override { return catalog_; }
  // Products and convolutions may then be multiplied as bf16 or TF32 by the libraries.
  const Device& with_precision(Precision precision) const override {
    return precision == Precision::bf16 && narrow_ ? *narrow_ : *this;
  }
  const Memory* memory() const override { return &machine_.memory(); }
  std::unique_ptr<Stream> new_stream() const override { return std::make_unique<CudaStream>(machine_); }
  std::unique_ptr<Event> new_event() const override {
    return std::make_unique<CudaEvent>(machine_, CudaEvent::Clock::off);
  }
  std::shared_ptr<Launchable> record(std::shared_ptr<const CompiledPlan> plan) const override {
    return record_steps(*this, std::move(plan));
  }

 private:
  const Machine& machine_;
  KernelCatalog catalog_;
  std::unique_ptr<CudaDevice> narrow_;  // the same with kernels for bf16; null in itself
};

}  // namespace
}  // namespace cuda

std::vector<std::string> cuda_device_names() {
  std::vector<std::string> names = cuda::machine_names();
  if (names.size() > gpu::kMaxDevices) names.resize(gpu::kMaxDevices);
  return names;
}

std::unique_ptr<Device> make_cuda(const std::string& name) {
  const auto number = gpu::device_number(cuda::kName, name);
  if (!number) return nullptr;
  return std::make_unique<cuda::CudaDevice>(name, *number, Precision::f32);
}

}  // namespace autograph
