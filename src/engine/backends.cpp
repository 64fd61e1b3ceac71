#include "engine/backends.h"

#include "autograph/compile.h"
#include "backends/cpu/cpu_kernels.h"
#include "backends/reference/reference_kernel.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"
#include "runtime/stream_threads.h"

namespace autograph {
namespace {

bool run_reference_streams(int streams, int threads, FunctionRef<void(int)> work) {
  return StreamThreads::of_process().run(streams, threads, nullptr, work);
}

const std::vector<Device>& devices() {
  static const std::vector<Device> kDevices = [] {
    std::vector<KernelDef> cpu = cpu_kernels();
    cpu.push_back(reference_kernel());
    return std::vector<Device>{
        {"cpu", KernelCatalog(std::move(cpu), cpu_reorder()), set_cpu_threads, cpu_identity, forget_cpu_kernels,
         run_cpu_streams},
        {"reference", KernelCatalog({reference_kernel()}), nullptr, nullptr, nullptr, run_reference_streams}};
  }();
  return kDevices;
}

}  // namespace

std::vector<std::string> available_devices() {
  std::vector<std::string> names;
  for (const Device& device : devices()) names.push_back(device.name);
  return names;
}

const Device& get_device(const std::string& name) {
  for (const Device& device : devices()) {
    if (device.name == name) return device;
  }
  const std::vector<std::string> names = available_devices();
  throw DeviceError(fmt::format("[compile] device: expected one of {}, got '{}'{}", bracketed(names), name,
                                did_you_mean(name, names)));
}

}  // namespace autograph
