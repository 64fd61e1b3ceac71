// The devices of this build. The only place that names concrete backends.
#include "autograph/devices.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "autograph/compile.h"
#include "backends/cpu/cpu_device.h"
#include "backends/cuda/cuda_device.h"
#include "backends/opencl/opencl_device.h"
#include "backends/reference/reference_device.h"
#include "backends/sim/sim_device.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"
#include "base/text/lower_case.h"
#include "engine/built_in_devices.h"

namespace autograph {
namespace {

// What makes devices of one kind.
struct Backend {
  const char* first;                    ///< Name of the first one where a machine has any; null: all have.
  std::vector<std::string> (*names)();  ///< Of those that are there, best first.
  std::unique_ptr<Device> (*make)(const std::string& name);  ///< Null where the name is not one of this kind.
};

// A line for each backend, best first.
constexpr Backend kBackends[] = {
    {nullptr, cpu_device_names, make_cpu},  {nullptr, reference_device_names, make_reference},
    {"cuda", cuda_device_names, make_cuda}, {"opencl", opencl_device_names, make_opencl},
    {nullptr, sim_device_names, make_sim},
};

// Devices are made when first asked for, and kept.
class Devices {
 public:
  const Device* find(const std::string& name) {
    const std::lock_guard lock(mutex_);
    if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second.get();
    for (const Backend& backend : kBackends) {
      if (std::unique_ptr<Device> device = backend.make(name)) return keep(name, std::move(device));
    }
    return nullptr;
  }

  const Device& add(std::unique_ptr<Device> device) {
    const std::string name = device->name();
    AG_CHECK_USER(!find(name), ValueError, "[compile] device '{}': there already", name);
    const std::lock_guard lock(mutex_);
    added_.push_back(name);
    return *keep(name, std::move(device));
  }

  std::vector<std::string> added() {
    const std::lock_guard lock(mutex_);
    return added_;
  }

  static Devices& of_process() {
    static Devices devices;
    return devices;
  }

 private:
  const Device* keep(const std::string& name, std::unique_ptr<Device> device) {
    return by_name_.emplace(name, std::move(device)).first->second.get();
  }

  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Device>> by_name_;  // guarded by mutex_
  std::vector<std::string> added_;                          // likewise
};

// "cuda" of "cuda:1".
std::string_view kind_of(std::string_view name) { return name.substr(0, name.find(':')); }

// What people say, and other libraries, for those that not all machines have.
bool means_gpu(std::string_view name) {
  const std::string kind = lower_case(kind_of(name));
  return kind == "gpu" || kind == "nvidia";
}

std::string gpu_hint() {
  std::vector<std::string> kinds;
  std::vector<std::string> there;
  for (const Backend& backend : kBackends) {
    if (!backend.first) continue;
    kinds.push_back(fmt::format("'{}'", backend.first));
    for (const std::string& name : backend.names()) there.push_back(fmt::format("'{}'", name));
  }
  if (!there.empty()) return fmt::format(" (did you mean {}?)", join(there, " or "));
  return fmt::format(" (GPUs are {}, of which this machine has none: 'doctor' tells what was looked for)",
                     join(kinds, " and "));
}

}  // namespace

std::vector<std::string> built_in_devices() {
  std::vector<std::string> all;
  for (const Backend& backend : kBackends) {
    const std::vector<std::string> names = backend.names();
    all.insert(all.end(), names.begin(), names.end());
  }
  return all;
}

std::vector<std::string> available_devices() {
  std::vector<std::string> all = built_in_devices();
  const std::vector<std::string> added = Devices::of_process().added();
  all.insert(all.end(), added.begin(), added.end());
  return all;
}

std::vector<MissingDevice> missing_devices() {
  std::vector<MissingDevice> missing;
  for (const Backend& backend : kBackends) {
    if (!backend.first || !backend.names().empty()) continue;
    try {
      backend.make(backend.first);
    } catch (const DeviceError& error) {
      missing.push_back({backend.first, error.what()});
    }
  }
  return missing;
}

bool is_device_name(const std::string& name) {
  const auto is_like = [&](const std::string& known) {
    const bool is_whole = kind_of(known) == known;  // else "sim" alone is none
    return kind_of(known) == kind_of(name) && (is_whole || kind_of(name) != name);
  };
  std::vector<std::string> known = Devices::of_process().added();
  for (const Backend& backend : kBackends) {
    const std::vector<std::string> names = backend.first ? std::vector<std::string>{backend.first} : backend.names();
    known.insert(known.end(), names.begin(), names.end());
  }
  return std::any_of(known.begin(), known.end(), is_like);
}

std::string device_hint(const std::string& name) {
  return means_gpu(name) ? gpu_hint() : did_you_mean(name, available_devices());
}

const Device& add_device(std::unique_ptr<Device> device) { return Devices::of_process().add(std::move(device)); }

const Device& get_device(const std::string& name, Precision precision) {
  if (const Device* device = Devices::of_process().find(name)) return device->with_precision(precision);
  throw DeviceError(fmt::format("[compile] device: expected one of {}, got '{}'{}", bracketed(available_devices()),
                                name, device_hint(name)));
}

}  // namespace autograph
