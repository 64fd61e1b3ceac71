#include "backends/cpu/cpu_device.h"

#include "autograph/reference_kernel.h"
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/threads/pin_threads.h"
#include "backends/cpu/threads/thread_limit.h"
#include "base/check.h"
#include "device/host_threads.h"
#include "runtime/run_context.h"

namespace autograph {
namespace {

class CpuThreads : public HostThreads {
 public:
  bool are_used() const override { return true; }
  int set(int threads) const override { return set_cpu_threads(threads); }
  bool can_be_limited() const override { return true; }
  int limit(int threads) const override { return limit_cpu_threads(threads); }
  void pin(int threads) const override { pin_cpu_threads(threads); }
  void unpin() const override { unpin_cpu_thread(); }
  bool run_streams(int streams, int threads, FunctionRef<void(int)> work) const override {
    return run_cpu_streams(streams, threads, work);
  }
};

std::vector<KernelDef> with_reference(std::vector<KernelDef> kernels) {
  kernels.push_back(reference_kernel());
  return kernels;
}

// The processor, with kernels for bf16 beside the others.
class Cpu : public CpuDevice {
 public:
  Cpu() : CpuDevice("cpu", cpu_kernels(), cpu_identity()) {}

  const Device& with_precision(Precision precision) const override {
    if (precision != Precision::bf16) return Device::with_precision(precision);
    const std::string missing = why_no_bf16();
    if (!missing.empty()) throw DeviceError(fmt::format("[compile] precision: bf16 is not there on {}", missing));
    static const CpuDevice kWithBf16("cpu", cpu_kernels_with_bf16(), cpu_identity());
    return kWithBf16;
  }
};

}  // namespace

CpuDevice::CpuDevice(std::string name, std::vector<KernelDef> kernels, std::string identity)
    : Device(std::move(name)),
      identity_(std::move(identity)),
      catalog_(with_reference(std::move(kernels)), cpu_reorder()) {}

std::shared_ptr<Launchable> CpuDevice::record(std::shared_ptr<const CompiledPlan> plan) const {
  return std::make_shared<RunContext>(std::move(plan));
}

const HostThreads& CpuDevice::host_threads() const { return cpu_threads(); }

void CpuDevice::forget_kernels() const { forget_cpu_kernels(); }

std::vector<std::string> cpu_device_names() { return {"cpu"}; }

std::unique_ptr<Device> make_cpu(const std::string& name) { return name == "cpu" ? std::make_unique<Cpu>() : nullptr; }

const HostThreads& cpu_threads() {
  static const CpuThreads kThreads;
  return kThreads;
}

}  // namespace autograph
