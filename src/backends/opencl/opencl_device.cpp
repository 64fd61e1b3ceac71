#include "backends/opencl/opencl_device.h"

#include "autograph/error.h"
#include "autograph/executor.h"
#include "backends/gpu/numbered_device.h"

#ifdef AG_HAS_OPENCL
#include "backends/opencl/generated_kernel.h"
#include "backends/opencl/machine.h"
#include "backends/opencl/stream.h"
#endif

namespace autograph {
namespace {

constexpr std::string_view kName = "opencl";

}  // namespace

#ifdef AG_HAS_OPENCL
namespace opencl {
namespace {

template <size_t number>
std::string why_not(const KernelCall& call) {
  return gpu::why_not_emitted(call, get_machine(number).target());
}

template <size_t number>
Prepared prepare(const KernelCall& call) {
  return prepare_generated(get_machine(number), call);
}

template <size_t... numbers>
KernelDef generated_kernel(size_t number, std::index_sequence<numbers...>) {
  static constexpr decltype(KernelDef::why_not) kWhyNot[] = {why_not<numbers>...};
  static constexpr decltype(KernelDef::prepare) kPrepare[] = {prepare<numbers>...};
  return {.name = "opencl.generated", .op = "", .why_not = kWhyNot[number], .prepare = kPrepare[number]};
}

std::vector<KernelDef> kernels_of(size_t number) {
  std::vector<KernelDef> kernels;
  gpu::add_emitted(kernels, generated_kernel(number, std::make_index_sequence<gpu::kMaxDevices>()));
  return kernels;
}

class OpenClDevice : public Device {
 public:
  OpenClDevice(const std::string& name, size_t number)
      : Device(name), machine_(get_machine(number)), catalog_(kernels_of(number)) {}

  std::string identity() const override { return machine_.identity(); }
  DeviceProperties properties() const override { return {.max_streams = 4, .sync_us = 10, .has_clock = true}; }
  const KernelCatalog& catalog() const override { return catalog_; }
  const Memory* memory() const override { return &machine_.memory(); }
  std::unique_ptr<Stream> new_stream() const override { return std::make_unique<OpenClStream>(machine_); }
  std::unique_ptr<Event> new_event() const override { return std::make_unique<OpenClEvent>(); }
  std::shared_ptr<Launchable> record(std::shared_ptr<const CompiledPlan> plan) const override {
    return record_steps(*this, std::move(plan));
  }

 private:
  const Machine& machine_;
  KernelCatalog catalog_;
};

}  // namespace
}  // namespace opencl

std::vector<std::string> opencl_device_names() {
  std::vector<std::string> names = opencl::machine_names();
  if (names.size() > gpu::kMaxDevices) names.resize(gpu::kMaxDevices);
  return names;
}

std::unique_ptr<Device> make_opencl(const std::string& name) {
  const auto number = gpu::device_number(kName, name);
  if (!number) return nullptr;
  return std::make_unique<opencl::OpenClDevice>(name, *number);
}
#else
std::vector<std::string> opencl_device_names() { return {}; }

std::unique_ptr<Device> make_opencl(const std::string& name) {
  if (!gpu::device_number(kName, name)) return nullptr;
  throw DeviceError(
      "[opencl] device: this program was built without the headers of OpenCL (Debian: opencl-c-headers); build it "
      "again where they are");
}
#endif

}  // namespace autograph
