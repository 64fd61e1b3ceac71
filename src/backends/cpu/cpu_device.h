// The processor as a device: host memory, threads of the host, and whatever kernels it is given.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "autograph/device.h"

namespace autograph {

class CpuDevice : public Device {
 public:
  /// Measurements of kernels are kept for devices with this `identity`. The reference stands behind all `kernels`.
  CpuDevice(std::string name, std::vector<KernelDef> kernels, std::string identity);

  std::string identity() const override { return identity_; }
  const KernelCatalog& catalog() const override { return catalog_; }
  std::shared_ptr<Launchable> record(std::shared_ptr<const CompiledPlan> plan) const override;
  const HostThreads& host_threads() const override;
  void forget_kernels() const override;

 private:
  std::string identity_;
  KernelCatalog catalog_;
};

/// "cpu".
std::vector<std::string> cpu_device_names();

/// "cpu", with kernels of either precision; null for other names.
std::unique_ptr<Device> make_cpu(const std::string& name);

/// How kernels use the threads of this process.
const HostThreads& cpu_threads();

}  // namespace autograph
