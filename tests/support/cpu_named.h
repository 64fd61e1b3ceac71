// The processor under another name: measurements of devices of different identity are kept apart.
#pragma once

#include <string>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/cpu_kernels.h"

namespace autograph {

/// The kernels of the processor as those of a machine with this identity.
class CpuNamed : public CpuDevice {
 public:
  explicit CpuNamed(const std::string& identity) : CpuDevice("cpu", cpu_kernels(), identity) {}
};

}  // namespace autograph
