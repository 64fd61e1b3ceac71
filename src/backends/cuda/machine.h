// The CUDA devices of this machine, and what each has as long as the process lives: a context, its memory, a stream for
// copies that the host waits for.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/libraries/driver.h"
#include "backends/cuda/memory.h"
#include "backends/cuda/module.h"
#include "backends/gpu/emit/target.h"
#include "base/function_ref.h"

namespace autograph::cuda {

/// One device. Never destroyed: drivers end before the objects of a process do.
class Machine {
 public:
  Machine(std::string name, int number);

  /// "cuda", "cuda:1", ...
  const std::string& name() const { return name_; }
  /// Device, driver, compiler and libraries, with versions.
  const std::string& identity() const { return identity_; }
  /// 90 for compute capability 9.0.
  int architecture() const { return architecture_; }
  const gpu::Target& target() const { return target_; }
  const CudaMemory& memory() const { return memory_; }
  ModuleCache& modules() const { return *modules_; }
  /// Floating point operations (of f32, without tensor cores) and bytes that it does in a microsecond at most, roughly.
  double flops_per_us() const { return flops_per_us_; }

  /// What this thread calls of the driver is for this device from here on.
  void make_current() const;
  CUstream new_stream() const;
  /// Throws DeviceError "[cuda] what: ..." unless `code` is CUDA_SUCCESS; says so, and in later errors too, when the
  /// device takes no more work from this process after it.
  void check(CUresult code, std::string_view what) const;
  /// Copies and waits: `enqueue` gets a stream. Not while this thread captures.
  void copy_now(FunctionRef<CUresult(CUstream)> enqueue) const;

 private:
  std::string name_;
  std::string identity_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  int architecture_ = 0;
  double flops_per_us_ = 0;
  gpu::Target target_;
  CudaMemory memory_;
  std::unique_ptr<ModuleCache> modules_;
  CUstream copies_ = nullptr;
  mutable std::mutex copy_mutex_;  // one copy at a time
  mutable std::mutex lost_mutex_;  // guards lost_
  mutable std::string lost_;       // the error after which the device takes no more work
};

/// Names that get_machine() knows; empty where there is no driver, no compiler or no device.
const std::vector<std::string>& machine_names();

/// Device `number` of the driver. Throws DeviceError that says what was looked for and where when it is not there or
/// cannot be used.
const Machine& get_machine(size_t number);

}  // namespace autograph::cuda
