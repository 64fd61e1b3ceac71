// The devices of OpenCL on this machine, and what each has as long as the process lives: a context, its memory, a queue
// for copies that the host waits for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/gpu/emit/target.h"
#include "backends/opencl/api.h"
#include "backends/opencl/memory.h"
#include "backends/opencl/program_cache.h"

namespace autograph::opencl {

/// One device. Never destroyed: drivers end before the objects of a process do.
class Machine {
 public:
  Machine(std::string name, cl_platform_id platform, cl_device_id device);

  /// "opencl", "opencl:1", ...
  const std::string& name() const { return name_; }
  /// Device, driver and platform, with versions.
  const std::string& identity() const { return identity_; }
  cl_device_id device() const { return device_; }
  cl_context context() const { return context_; }
  const gpu::Target& target() const { return target_; }
  const OpenClMemory& memory() const { return *memory_; }
  ProgramCache& programs() const { return *programs_; }
  /// A queue in order, whose commands can be timed.
  cl_command_queue new_queue() const;

 private:
  std::string name_;
  std::string identity_;
  cl_device_id device_;
  cl_context context_ = nullptr;
  gpu::Target target_;
  std::unique_ptr<OpenClMemory> memory_;
  std::unique_ptr<ProgramCache> programs_;
};

/// Names that get_machine() knows, graphics processors first; empty where there is no OpenCL, or no device.
const std::vector<std::string>& machine_names();

/// Number `index` of machine_names(). Throws DeviceError that says what was looked for where there are fewer.
const Machine& get_machine(size_t index);

}  // namespace autograph::opencl
