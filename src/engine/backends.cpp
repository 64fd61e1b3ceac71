#include "engine/backends.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "autograph/compile.h"
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/pin_threads.h"
#include "backends/cpu/thread_limit.h"
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

Device make_cpu(std::vector<KernelDef> kernels) {
  kernels.push_back(reference_kernel());
  return {.name = "cpu",
          .catalog = KernelCatalog(std::move(kernels), cpu_reorder()),
          .set_threads = set_cpu_threads,
          .limit_threads = limit_cpu_threads,
          .pin_threads = pin_cpu_threads,
          .unpin_thread = unpin_cpu_thread,
          .identity = cpu_identity,
          .forget_kernels = forget_cpu_kernels,
          .run_streams = run_cpu_streams};
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
    device = std::make_unique<Device>(make_cpu(cpu_kernels()));
    device->name = name;
    device->machine = std::move(machine);
  }
  return *device;
}

const std::vector<Device>& devices() {
  static const std::vector<Device> kDevices{
      make_cpu(cpu_kernels()),
      {.name = "reference", .catalog = KernelCatalog({reference_kernel()}), .run_streams = run_reference_streams}};
  return kDevices;
}

// Devices beside those of the build.
class AddedDevices {
 public:
  void add(Device device) {
    const std::lock_guard lock(mutex_);
    const std::string name = device.name;
    const bool is_new = by_name_.try_emplace(name, std::make_unique<Device>(std::move(device))).second;
    AG_CHECK_USER(is_new, ValueError, "[compile] device '{}': there already", name);
  }
  const Device* find(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second.get();
  }
  static AddedDevices& of_process() {
    static AddedDevices devices;
    return devices;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Device>> by_name_;  // guarded by mutex_
};

const Device& cpu_with_bf16() {
  static const Device kDevice = make_cpu(cpu_kernels_with_bf16());
  return kDevice;
}

// The device `plain` with kernels that may round to bf16.
const Device& with_bf16(const Device& plain) {
  if (plain.name != "cpu") {
    throw UnsupportedError(
        fmt::format("[compile] precision: expected f32 on device '{}', got bf16 (cpu has it)", plain.name));
  }
  const std::string missing = why_no_bf16();
  if (!missing.empty()) throw DeviceError(fmt::format("[compile] precision: bf16 is not there on {}", missing));
  return cpu_with_bf16();
}

}  // namespace

std::vector<std::string> available_precisions() { return {"f32", "bf16"}; }

std::vector<std::string> available_devices() {
  std::vector<std::string> names;
  for (const Device& device : devices()) names.push_back(device.name);
  for (const std::string& machine : sim_machine_names()) names.push_back(std::string(kSimulated) + machine);
  return names;
}

void add_device(Device device) { AddedDevices::of_process().add(std::move(device)); }

const Device& get_device(const std::string& name, const std::string& precision) {
  if (name.starts_with(kSimulated)) {
    if (precision == "f32") return simulated_device(name);
    throw UnsupportedError(fmt::format("[compile] precision: expected f32 on device '{}', got {}", name, precision));
  }
  const std::vector<std::string> precisions = available_precisions();
  if (std::find(precisions.begin(), precisions.end(), precision) == precisions.end()) {
    throw ValueError(fmt::format("[compile] precision: expected one of {}, got '{}'{}", bracketed(precisions),
                                 precision, did_you_mean(precision, precisions)));
  }
  for (const Device& device : devices()) {
    if (device.name == name) return precision == "bf16" ? with_bf16(device) : device;
  }
  if (const Device* added = AddedDevices::of_process().find(name)) return *added;
  const std::vector<std::string> names = available_devices();
  throw DeviceError(fmt::format("[compile] device: expected one of {}, got '{}'{}", bracketed(names), name,
                                did_you_mean(name, names)));
}

}  // namespace autograph
