#include "engine/backends.h"

#include <map>
#include <memory>
#include <mutex>

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

Device make_cpu() {
  std::vector<KernelDef> cpu = cpu_kernels();
  cpu.push_back(reference_kernel());
  return {
      "cpu",          KernelCatalog(std::move(cpu), cpu_reorder()), set_cpu_threads, cpu_identity, forget_cpu_kernels,
      run_cpu_streams};
}

const std::vector<Device>& devices() {
  static const std::vector<Device> kDevices = [] {
    std::vector<Device> list;
    list.push_back(make_cpu());
    list.push_back(
        {"reference", KernelCatalog({reference_kernel()}), nullptr, nullptr, nullptr, run_reference_streams});
    return list;
  }();
  return kDevices;
}

constexpr std::string_view kSimulated = "sim:";

// Made when first asked for, and kept: a name may be that of a file.
const Device& simulated_device(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Device>> known;  // guarded by mutex
  const std::lock_guard lock(mutex);
  std::unique_ptr<Device>& device = known[name];
  if (!device) {
    SimMachine machine = load_sim_machine(name.substr(kSimulated.size()));
    device = std::make_unique<Device>(make_cpu());
    device->name = name;
    device->machine = std::move(machine);
  }
  return *device;
}

}  // namespace

std::vector<std::string> available_devices() {
  std::vector<std::string> names;
  for (const Device& device : devices()) names.push_back(device.name);
  for (const std::string& machine : sim_machine_names()) names.push_back(std::string(kSimulated) + machine);
  return names;
}

const Device& get_device(const std::string& name) {
  if (name.starts_with(kSimulated)) return simulated_device(name);
  for (const Device& device : devices()) {
    if (device.name == name) return device;
  }
  const std::vector<std::string> names = available_devices();
  throw DeviceError(fmt::format("[compile] device: expected one of {}, got '{}'{}", bracketed(names), name,
                                did_you_mean(name, names)));
}

}  // namespace autograph
