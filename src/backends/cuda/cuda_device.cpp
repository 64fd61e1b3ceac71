#include "backends/cuda/cuda_device.h"

#include "autograph/executor.h"
#include "autograph/graph.h"
#include "backends/cuda/cudnn_conv.h"
#include "backends/cuda/generated_kernel.h"
#include "backends/cuda/library_with_epilogue.h"
#include "backends/cuda/lt_product.h"
#include "backends/cuda/stream.h"
#include "backends/gpu/numbered_device.h"
#include "ops/defs.h"

namespace autograph {
namespace cuda {
namespace {

constexpr std::string_view kName = "cuda";

template <size_t number>
KernelDef generated_kernel() {
  return {.name = "cuda.generated",
          .op = "",
          .why_not = [](const KernelCall& call) { return gpu::why_not_emitted(call, get_machine(number).target()); },
          .prepare = [](const KernelCall& call) { return prepare_generated(get_machine(number), call); },
          .variants = [](const KernelCall& call) { return generated_variants(get_machine(number), call); }};
}

template <size_t number, Precision precision>
KernelDef lt_product_kernel() {
  return {.name = "cuda.cublaslt",
          .op = "",
          .why_not = [](const KernelCall& call) { return why_not_lt_product(call); },
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

// `make` gives the library's kernel for the op alone, `producer` the op that a fused body is taken to begin with. One
// kernel for all ops of a library: two that refuse a step for the same reason would count it twice in reports.
template <size_t number, KernelDef (*make)(), const OpDef& (*producer)(const KernelCall&)>
KernelDef fused_library_kernel() {
  static const KernelDef kLibrary = make();
  return {.name = kLibrary.name,
          .op = "",
          .why_not =
              [](const KernelCall& call) {
                return why_not_with_epilogue(get_machine(number), call, producer(call), kLibrary);
              },
          .prepare =
              [](const KernelCall& call) {
                return prepare_with_epilogue(get_machine(number), call, producer(call), kLibrary);
              },
          .variants = [](const KernelCall& call) { return variants_with_epilogue(call, producer(call), kLibrary); }};
}

const OpDef& product_in(const KernelCall& call) {
  const Graph& body = *call.attributes.get<GraphRef>("body");
  for (const NodeId id : body.nodes()) {
    if (&body.node(id).op() == &gemm_def()) return gemm_def();
  }
  return matmul_def();
}

const OpDef& convolution_in(const KernelCall&) { return conv_def(); }

// Beside the product with a second kernel behind it stands the product with the library's own epilogue, where it has
// one for all that follows.
template <size_t number, Precision precision>
KernelDef fused_product_kernel() {
  static const KernelDef kBehind = fused_library_kernel<number, lt_product_kernel<number, precision>, product_in>();
  KernelDef def = kBehind;
  def.prepare = [](const KernelCall& call) {
    if (!is_lt_epilogue(call.variant)) return kBehind.prepare(call);
    return prepare_lt_epilogue(get_machine(number), call, product_in(call), precision);
  };
  def.variants = [](const KernelCall& call) {
    std::vector<KernelVariant> variants = kBehind.variants(call);
    for (KernelVariant& own : lt_epilogue_variants(get_machine(number), call, product_in(call), precision)) {
      variants.push_back(std::move(own));
    }
    return variants;
  };
  return def;
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
  add(fused_product_kernel<number, precision>(), fused_def());
  add(fused_library_kernel<number, dnn_conv_kernel<number, precision>, convolution_in>(), fused_def());
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
  DeviceProperties properties() const override { return {.max_streams = 8, .sync_us = 3, .has_clock = true}; }
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
