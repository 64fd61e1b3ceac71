#include "backends/cuda/machine.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "autograph/error.h"
#include "backends/cuda/capture.h"
#include "backends/cuda/libraries/cublaslt.h"
#include "backends/cuda/libraries/cudnn.h"
#include "backends/cuda/libraries/nvrtc.h"
#include "base/join.h"

namespace autograph::cuda {
namespace {

constexpr size_t kGroupSize = 256;

int attribute_of(CUdevice device, int attribute) {
  int value = 0;
  check(driver().cuDeviceGetAttribute(&value, attribute, device), "cuDeviceGetAttribute");
  return value;
}

int architecture_of(CUdevice device) {
  return 10 * attribute_of(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
         attribute_of(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

std::string name_of(CUdevice device) {
  std::array<char, 256> name{};
  check(driver().cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device), "cuDeviceGetName");
  return name.data();
}

CUdevice device_numbered(int number) {
  CUdevice device = 0;
  check(driver().cuDeviceGet(&device, number), "cuDeviceGet");
  return device;
}

int count_devices() {
  int count = 0;
  return driver().cuDeviceGetCount(&count) == CUDA_SUCCESS ? count : 0;
}

// "580.65.06": the driver itself tells the version of CUDA alone.
std::string kernel_driver_version() {
  std::ifstream file("/sys/module/nvidia/version");
  std::string version;
  return std::getline(file, version) ? " " + version : "";
}

std::string name_of_number(size_t number) { return number == 0 ? "cuda" : fmt::format("cuda:{}", number); }

// Errors after which every call fails: a kernel has gone wrong, or the device.
bool is_lasting(CUresult code) {
  constexpr CUresult kLasting[] = {214, 220, CUDA_ERROR_ILLEGAL_ADDRESS, 702, 710, 714, 715, 716, 717, 718, 719, 721};
  return std::find(std::begin(kLasting), std::end(kLasting), code) != std::end(kLasting);
}

}  // namespace

Machine::Machine(std::string name, int number)
    : name_(std::move(name)), device_(device_numbered(number)), memory_(*this) {
  architecture_ = architecture_of(device_);
  identity_ = fmt::format("cuda {} sm_{} driver{} (CUDA {}); nvrtc {}; {}; {}", name_of(device_), architecture_,
                          kernel_driver_version(), version_text(driver().version), version_text(compiler().version()),
                          cublaslt_version_text(), cudnn_version_text());
  check(driver().cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
  target_.dialect = gpu::Dialect::cuda;
  target_.max_group = kGroupSize;
  target_.local_bytes = static_cast<size_t>(attribute_of(device_, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
  target_.processors = attribute_of(device_, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  // 128 lanes at some 1500 MHz, two operations each.
  flops_per_us_ = target_.processors * 128 * 1500.0 * 2;
  modules_ = std::make_unique<ModuleCache>(*this, gpu::default_program_folder());
  copies_ = new_stream();
}

void Machine::make_current() const {
  thread_local CUcontext current = nullptr;  // no other code of this process changes it: contexts are shared, not it
  if (current == context_) return;
  check(driver().cuCtxSetCurrent(context_), "cuCtxSetCurrent");
  current = context_;
}

// Streams that do not wait for the one that programs use by default.
CUstream Machine::new_stream() const {
  make_current();
  CUstream stream = nullptr;
  check(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  return stream;
}

void Machine::check(CUresult code, std::string_view what) const {
  if (code == CUDA_SUCCESS) return;
  const std::lock_guard lock(lost_mutex_);
  std::string more;
  if (!lost_.empty()) {
    more = fmt::format(" (the device takes no more work from this process since {})", lost_);
  } else if (is_lasting(code)) {
    lost_ = fmt::format("{} failed with {}", what, error_text(code));
    more = " (the device takes no more work from this process)";
  }
  throw DeviceError(fmt::format("[{}] {}: {}{}", name_, what, error_text(code), more));
}

void Machine::copy_now(FunctionRef<CUresult(CUstream)> enqueue) const {
  if (Capture* capture = Capture::of_this_thread()) capture->refuse("a copy that the host waits for");
  make_current();
  const std::lock_guard lock(copy_mutex_);
  check(enqueue(copies_), "copy");
  check(driver().cuStreamSynchronize(copies_), "copy");
}

const std::vector<std::string>& machine_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    if (!find_driver() || !compiler().is_there()) return names;
    for (int i = 0; i < count_devices(); ++i) {
      if (compiler().knows(architecture_of(device_numbered(i)))) {
        names.push_back(name_of_number(static_cast<size_t>(i)));
      }
    }
    return names;
  }();
  return kNames;
}

const Machine& get_machine(size_t number) {
  static std::mutex mutex;
  static auto& machines = *new std::vector<Machine*>;  // not destroyed, see Machine
  const auto count = static_cast<size_t>((driver(), count_devices()));
  if (count == 0) {
    throw DeviceError(fmt::format("[cuda] device: the driver ({}) has none; see nvidia-smi, and CUDA_VISIBLE_DEVICES",
                                  driver().path));
  }
  if (!compiler().is_there()) throw DeviceError("[cuda] compiler: " + compiler().why_not());
  if (number >= count) {
    throw DeviceError(
        fmt::format("[cuda] device: expected one of {}, got '{}'", bracketed(machine_names()), name_of_number(number)));
  }
  const CUdevice device = device_numbered(static_cast<int>(number));
  if (!compiler().knows(architecture_of(device))) {
    throw DeviceError(fmt::format(
        "[cuda] device: '{}' has the architecture sm_{}, expected one of {}, for which NVRTC {} ({}) compiles; "
        "another version may: AUTOGRAPH_CUDA_PATH names where it is",
        name_of(device), architecture_of(device), compiler().architectures(), version_text(compiler().version()),
        compiler().path()));
  }
  const std::lock_guard lock(mutex);
  machines.resize(count, nullptr);
  if (!machines[number]) machines[number] = new Machine(name_of_number(number), static_cast<int>(number));
  return *machines[number];
}

}  // namespace autograph::cuda
